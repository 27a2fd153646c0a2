#pragma once

namespace violations {

int defined = 1;  // misc-definitions-in-headers

}

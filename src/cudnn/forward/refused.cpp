// The functions that Kiln does not implement, listed in refused.def. Each is forwarded to the real
// library or, without one, refuses with its name and writes to the log once.
#include "cudnn/forward/refused.hpp"

#include <tuple>

#include "core/log/log.hpp"
#include "cudnn/forward/translate.hpp"

namespace kiln::cudnn {

cudnnStatus_t refuse(const char* function, const char* what, std::atomic<bool>& told) noexcept {
  return guarded(
      [&] {
        const bool first = !told.exchange(true, std::memory_order_relaxed);
        if (first) log::warn(cat(function, " is refused: Kiln has no ", what));
        fail(KILN_STATUS_NOT_SUPPORTED, "Kiln has no ", what,
             "; expected a function that it serves, or KILN_CUDNN_FORWARD");
      },
      function);
}

namespace {

template <class... Parameters>
cudnnStatus_t refuse_or_forward(Function<Parameters...> function, const char* what,
                                std::atomic<bool>& told,
                                std::type_identity_t<Parameters>... arguments) noexcept {
  if (!forwards()) return refuse(function.name, what, told);
  return forward(function, arguments...);
}

template <class... Parameters>
cudnnStatus_t refuse_always(Function<Parameters...> function, const char* what,
                            std::atomic<bool>& told, std::type_identity_t<Parameters>...) noexcept {
  return refuse(function.name, what, told);
}

// Reads back the tensor descriptors at the positions `outputs` of the arguments. The others are
// inputs, which other threads may use at the same time, so they are left alone.
template <std::size_t... outputs, class... Parameters>
cudnnStatus_t refuse_or_forward_writing(Function<Parameters...> function, const char* what,
                                        std::atomic<bool>& told,
                                        std::type_identity_t<Parameters>... arguments) noexcept {
  const cudnnStatus_t status = refuse_or_forward(function, what, told, arguments...);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  const std::tuple all(arguments...);
  return guarded([&] { (read_back(std::get<outputs>(all)), ...); }, function.name);
}

// The types of a function's parameters.
template <class Type>
struct ParametersOf;
template <class... Parameters>
struct ParametersOf<cudnnStatus_t(Parameters...)> {
  template <std::size_t i>
  using At = std::tuple_element_t<i, std::tuple<Parameters...>>;
  static constexpr std::size_t count = sizeof...(Parameters);
};
template <class Type, std::size_t i>
using Parameter = typename ParametersOf<Type>::template At<i>;

}  // namespace
}  // namespace kiln::cudnn

// KILN_PARAMETERS_2(f) declares f's first two parameters; KILN_ARGUMENTS_2 lists their names.
#define KILN_P(f, i) kiln::cudnn::Parameter<decltype(f), i> p##i
#define KILN_PARAMETERS_0(f)
#define KILN_PARAMETERS_1(f) KILN_P(f, 0)
#define KILN_PARAMETERS_2(f) KILN_PARAMETERS_1(f), KILN_P(f, 1)
#define KILN_PARAMETERS_3(f) KILN_PARAMETERS_2(f), KILN_P(f, 2)
#define KILN_PARAMETERS_4(f) KILN_PARAMETERS_3(f), KILN_P(f, 3)
#define KILN_PARAMETERS_5(f) KILN_PARAMETERS_4(f), KILN_P(f, 4)
#define KILN_PARAMETERS_6(f) KILN_PARAMETERS_5(f), KILN_P(f, 5)
#define KILN_PARAMETERS_7(f) KILN_PARAMETERS_6(f), KILN_P(f, 6)
#define KILN_PARAMETERS_8(f) KILN_PARAMETERS_7(f), KILN_P(f, 7)
#define KILN_PARAMETERS_9(f) KILN_PARAMETERS_8(f), KILN_P(f, 8)
#define KILN_PARAMETERS_10(f) KILN_PARAMETERS_9(f), KILN_P(f, 9)
#define KILN_PARAMETERS_11(f) KILN_PARAMETERS_10(f), KILN_P(f, 10)
#define KILN_PARAMETERS_12(f) KILN_PARAMETERS_11(f), KILN_P(f, 11)
#define KILN_PARAMETERS_13(f) KILN_PARAMETERS_12(f), KILN_P(f, 12)
#define KILN_PARAMETERS_14(f) KILN_PARAMETERS_13(f), KILN_P(f, 13)
#define KILN_PARAMETERS_15(f) KILN_PARAMETERS_14(f), KILN_P(f, 14)
#define KILN_PARAMETERS_16(f) KILN_PARAMETERS_15(f), KILN_P(f, 15)
#define KILN_PARAMETERS_17(f) KILN_PARAMETERS_16(f), KILN_P(f, 16)
#define KILN_PARAMETERS_18(f) KILN_PARAMETERS_17(f), KILN_P(f, 17)
#define KILN_PARAMETERS_19(f) KILN_PARAMETERS_18(f), KILN_P(f, 18)
#define KILN_PARAMETERS_20(f) KILN_PARAMETERS_19(f), KILN_P(f, 19)
#define KILN_PARAMETERS_21(f) KILN_PARAMETERS_20(f), KILN_P(f, 20)
#define KILN_PARAMETERS_22(f) KILN_PARAMETERS_21(f), KILN_P(f, 21)
#define KILN_PARAMETERS_23(f) KILN_PARAMETERS_22(f), KILN_P(f, 22)
#define KILN_PARAMETERS_24(f) KILN_PARAMETERS_23(f), KILN_P(f, 23)
#define KILN_PARAMETERS_25(f) KILN_PARAMETERS_24(f), KILN_P(f, 24)
#define KILN_PARAMETERS_26(f) KILN_PARAMETERS_25(f), KILN_P(f, 25)
#define KILN_PARAMETERS_27(f) KILN_PARAMETERS_26(f), KILN_P(f, 26)
#define KILN_PARAMETERS_28(f) KILN_PARAMETERS_27(f), KILN_P(f, 27)
#define KILN_PARAMETERS_29(f) KILN_PARAMETERS_28(f), KILN_P(f, 28)
#define KILN_PARAMETERS_30(f) KILN_PARAMETERS_29(f), KILN_P(f, 29)
#define KILN_PARAMETERS_31(f) KILN_PARAMETERS_30(f), KILN_P(f, 30)
#define KILN_PARAMETERS_32(f) KILN_PARAMETERS_31(f), KILN_P(f, 31)
#define KILN_PARAMETERS_33(f) KILN_PARAMETERS_32(f), KILN_P(f, 32)
#define KILN_PARAMETERS_34(f) KILN_PARAMETERS_33(f), KILN_P(f, 33)
#define KILN_ARGUMENTS_0
#define KILN_ARGUMENTS_1 , p0
#define KILN_ARGUMENTS_2 KILN_ARGUMENTS_1, p1
#define KILN_ARGUMENTS_3 KILN_ARGUMENTS_2, p2
#define KILN_ARGUMENTS_4 KILN_ARGUMENTS_3, p3
#define KILN_ARGUMENTS_5 KILN_ARGUMENTS_4, p4
#define KILN_ARGUMENTS_6 KILN_ARGUMENTS_5, p5
#define KILN_ARGUMENTS_7 KILN_ARGUMENTS_6, p6
#define KILN_ARGUMENTS_8 KILN_ARGUMENTS_7, p7
#define KILN_ARGUMENTS_9 KILN_ARGUMENTS_8, p8
#define KILN_ARGUMENTS_10 KILN_ARGUMENTS_9, p9
#define KILN_ARGUMENTS_11 KILN_ARGUMENTS_10, p10
#define KILN_ARGUMENTS_12 KILN_ARGUMENTS_11, p11
#define KILN_ARGUMENTS_13 KILN_ARGUMENTS_12, p12
#define KILN_ARGUMENTS_14 KILN_ARGUMENTS_13, p13
#define KILN_ARGUMENTS_15 KILN_ARGUMENTS_14, p14
#define KILN_ARGUMENTS_16 KILN_ARGUMENTS_15, p15
#define KILN_ARGUMENTS_17 KILN_ARGUMENTS_16, p16
#define KILN_ARGUMENTS_18 KILN_ARGUMENTS_17, p17
#define KILN_ARGUMENTS_19 KILN_ARGUMENTS_18, p18
#define KILN_ARGUMENTS_20 KILN_ARGUMENTS_19, p19
#define KILN_ARGUMENTS_21 KILN_ARGUMENTS_20, p20
#define KILN_ARGUMENTS_22 KILN_ARGUMENTS_21, p21
#define KILN_ARGUMENTS_23 KILN_ARGUMENTS_22, p22
#define KILN_ARGUMENTS_24 KILN_ARGUMENTS_23, p23
#define KILN_ARGUMENTS_25 KILN_ARGUMENTS_24, p24
#define KILN_ARGUMENTS_26 KILN_ARGUMENTS_25, p25
#define KILN_ARGUMENTS_27 KILN_ARGUMENTS_26, p26
#define KILN_ARGUMENTS_28 KILN_ARGUMENTS_27, p27
#define KILN_ARGUMENTS_29 KILN_ARGUMENTS_28, p28
#define KILN_ARGUMENTS_30 KILN_ARGUMENTS_29, p29
#define KILN_ARGUMENTS_31 KILN_ARGUMENTS_30, p30
#define KILN_ARGUMENTS_32 KILN_ARGUMENTS_31, p31
#define KILN_ARGUMENTS_33 KILN_ARGUMENTS_32, p32
#define KILN_ARGUMENTS_34 KILN_ARGUMENTS_33, p33

// The refusal's text is the last argument, because it may contain commas.
#define KILN_DEFINE(name, number, what, ...)                                   \
  static_assert(kiln::cudnn::ParametersOf<decltype(name)>::count == (number)); \
  cudnnStatus_t name(KILN_PARAMETERS_##number(name)) {                         \
    static std::atomic<bool> told{false};                                      \
    return kiln::cudnn::__VA_ARGS__(kiln::cudnn::Function(name), what,         \
                                    told KILN_ARGUMENTS_##number);             \
  }
#define KILN_REFUSED(name, number, what) KILN_DEFINE(name, number, what, refuse_or_forward)
#define KILN_REFUSED_WRITING(name, number, what, ...) \
  KILN_DEFINE(name, number, what, refuse_or_forward_writing<__VA_ARGS__>)
#define KILN_REFUSED_ALWAYS(name, number, what) KILN_DEFINE(name, number, what, refuse_always)
#define KILN_REFUSED_BY_HAND(name, number, what)
#define KILN_UNDECLARED(name, what)                \
  extern "C" cudnnStatus_t name() {                \
    static std::atomic<bool> told{false};          \
    return kiln::cudnn::refuse(#name, what, told); \
  }

#include "cudnn/forward/refused.def"

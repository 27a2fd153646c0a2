#include "cache/store/private_directory.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "cache/store/disk_store.hpp"
#include "support.hpp"

namespace kiln::cache::test {

namespace fs = std::filesystem;

namespace {

// Checks that the cache works in memory only, warns once, and writes nothing there.
void check_refused(const std::string& directory, const std::string& reason) {
  BOOST_TEST_CONTEXT(directory << ", " << reason) {
    const auto before = files_below(directory);
    Warnings warnings;
    DiskStore store(directory, warnings.sink());
    BOOST_TEST(!store.usable());
    for (int i = 0; i < 3; ++i) {
      const Lookup lookup = store.get(sample_key(i, i == 2 ? "" : "A"));
      BOOST_TEST(name_of(lookup.miss) == "disabled");
      BOOST_TEST(lookup.detail == store.why_unusable());
      BOOST_TEST(!store.put(sample_key(i), sample_entry()));
    }
    BOOST_TEST(store.list().empty());
    BOOST_TEST(store.clear() == 0u);
    BOOST_TEST(store.why_unusable().find(reason) != std::string::npos, store.why_unusable());
    BOOST_REQUIRE(warnings.all().size() == 1u);
    BOOST_TEST(warnings.all()[0].find(reason) != std::string::npos, warnings.all()[0]);
    BOOST_TEST((files_below(directory) == before));
  }
}

struct Fixture {
  ScratchDirectory scratch;
  std::string directory = scratch.path();
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(private_directory, Fixture)

BOOST_AUTO_TEST_CASE(no_place_at_all) {
  check_refused("", "no HOME, XDG_CACHE_HOME or KILN_CACHE_DIR");
}

BOOST_AUTO_TEST_CASE(writable_by_others) {
  for (const mode_t mode : {0777, 01777, 0770, 0702, 0720}) {
    {  // entries from the time when it was private are not used, either
      DiskStore store(directory, nullptr);
      BOOST_TEST(store.put(sample_key(0, "A"), sample_entry()));
    }
    chmod(directory.c_str(), mode);
    check_refused(directory, "can be written by other users");
    chmod(directory.c_str(), 0700);
  }
}

BOOST_AUTO_TEST_CASE(readable_by_others_is_sound) {
  fs::create_directory(directory);
  chmod(directory.c_str(), 0755);
  DiskStore store(directory, nullptr);
  BOOST_TEST(store.put(sample_key(), sample_entry()));
  BOOST_TEST(mode_of(directory) == 0755u);  // the user's choice
}

BOOST_AUTO_TEST_CASE(links) {
  fs::create_directory(scratch.path("real"));
  chmod(scratch.path("real").c_str(), 0700);
  fs::create_directory_symlink(scratch.path("real"), directory);
  check_refused(directory, "is a symbolic link");
  check_refused(directory + "/", "is a symbolic link");
  check_refused(directory + "/./", "is a symbolic link");
  fs::remove(directory);
  fs::create_symlink(scratch.path("nowhere"), directory);
  check_refused(directory, "is a symbolic link");
  BOOST_TEST(!fs::exists(scratch.path("nowhere")));
}

BOOST_AUTO_TEST_CASE(no_directory) {
  write_bytes(directory, Bytes(3));
  check_refused(directory, "is not a directory");
  check_refused(directory + "/below", "cannot be examined");
  fs::remove(directory);
  BOOST_TEST(mkfifo(directory.c_str(), 0600) == 0);
  check_refused(directory, "is not a directory");
}

BOOST_AUTO_TEST_CASE(another_users) {
  if (geteuid() != 0) {
    check_refused("/", "belongs to another user");
    return;
  }
  fs::create_directory(directory);
  chmod(directory.c_str(), 0700);
  BOOST_TEST(chown(directory.c_str(), 65534, 65534) == 0);
  check_refused(directory, "belongs to another user (uid 65534");
}

BOOST_AUTO_TEST_CASE(becomes_unsound_before_the_first_write) {
  Warnings warnings;
  DiskStore store(directory, warnings.sink());
  BOOST_TEST(store.usable());
  fs::create_directory(directory);
  chmod(directory.c_str(), 0777);
  BOOST_TEST(!store.put(sample_key(), sample_entry()));
  BOOST_TEST(!store.usable());
  BOOST_TEST(name_of(store.get(sample_key()).miss) == "disabled");
  BOOST_TEST(warnings.all().size() == 1u);
  BOOST_TEST(fs::is_empty(directory));
}

// In a parent that everybody may write to, everybody may replace the directory.
BOOST_AUTO_TEST_CASE(a_parent_that_everybody_may_write) {
  const std::string parent = scratch.path("open"), below = parent + "/cache";
  fs::create_directory(parent);
  chmod(parent.c_str(), 0777);
  check_refused(below, "where every user may rename it");
  BOOST_TEST(fs::is_empty(parent));
  fs::create_directory(below);
  chmod(below.c_str(), 0700);
  check_refused(below, "where every user may rename it");
  for (const mode_t mode : {01777, 0755, 0775}) {
    chmod(parent.c_str(), mode);
    DiskStore store(below, nullptr);
    BOOST_TEST(store.put(sample_key(), sample_entry()));
  }
}

// The version folder inside has to be private, too.
BOOST_AUTO_TEST_CASE(the_version_folder_is_examined_too) {
  const std::string version = directory + "/v1";
  BOOST_REQUIRE(DiskStore(directory, nullptr).put(sample_key(0, "A"), sample_entry()));
  chmod(version.c_str(), 0777);
  check_refused(directory, "can be written by other users");
  chmod(version.c_str(), 0700);
  if (geteuid() == 0) {
    BOOST_REQUIRE(chown(version.c_str(), 65534, 65534) == 0);
    check_refused(directory, "belongs to another user (uid 65534");
    BOOST_REQUIRE(chown(version.c_str(), 0, 0) == 0);
  }
  fs::rename(version, scratch.path("elsewhere"));
  fs::create_directory_symlink(scratch.path("elsewhere"), version);
  check_refused(directory, "is a symbolic link");
  fs::remove(version);
  write_bytes(version, Bytes(3));
  check_refused(directory, "is not a directory");
}

// A directory that was sound, was removed, and was made anew by somebody else with a copy of what
// was in it. (A test that is not root cannot give files away; it lets others write them.)
BOOST_AUTO_TEST_CASE(another_directory_in_the_sound_ones_place) {
  const auto give_away = [](const std::string& path) {
    if (geteuid() == 0 && lchown(path.c_str(), 65534, 65534) != 0) return false;
    return chmod(path.c_str(), fs::is_directory(path) ? 0777 : 0666) == 0;
  };
  for (const bool with_entries : {true, false}) {
    BOOST_TEST_CONTEXT("with entries " << with_entries) {
      fs::remove_all(directory);
      Warnings warnings;
      DiskStore store(directory, warnings.sink());
      BOOST_REQUIRE(store.put(sample_key(), sample_entry("mine")));
      BOOST_REQUIRE(store.get(sample_key()).entry.has_value());
      fs::remove_all(directory);
      fs::create_directory(directory);
      if (with_entries) {
        chmod(directory.c_str(), 0700);
        BOOST_REQUIRE(DiskStore(directory, nullptr).put(sample_key(), sample_entry("theirs")));
        for (const auto& file : fs::recursive_directory_iterator(directory))
          BOOST_REQUIRE(give_away(file.path()));
      }
      BOOST_REQUIRE(give_away(directory));
      const auto before = files_below(directory);
      const Lookup lookup = store.get(sample_key());
      BOOST_TEST(!lookup.entry.has_value());
      BOOST_TEST(name_of(lookup.miss) == "disabled");
      BOOST_TEST(!store.put(sample_key(), sample_entry()));
      BOOST_TEST(store.lock_path(sample_key()) == "");
      BOOST_TEST(warnings.all().size() == 1u);
      BOOST_TEST((files_below(directory) == before));
    }
  }
}

// Another user writes into the folder before the first miss.
BOOST_AUTO_TEST_CASE(becomes_unsound_between_two_writes) {
  Warnings warnings;
  DiskStore store(directory, warnings.sink());
  store.set_limit(1'000'000);
  BOOST_REQUIRE(store.put(sample_key(), sample_entry()));
  chmod(directory.c_str(), 0777);
  const auto before = files_below(directory);
  store.flush("disk=1");
  BOOST_TEST(!store.put(sample_key(1), sample_entry()));
  BOOST_TEST((files_below(directory) == before));
  BOOST_TEST(warnings.all().size() == 1u);
}

// Entries that others may have written are replaced, and so are other users' entries.
BOOST_AUTO_TEST_CASE(an_entry_that_others_can_have_written_is_none) {
  Warnings warnings;
  DiskStore store(directory, warnings.sink());
  BOOST_REQUIRE(store.put(sample_key(), sample_entry()));
  const std::string path = path_of(store, sample_key());
  const auto check = [&](const char* reason) {
    const Lookup lookup = store.get(sample_key());
    BOOST_TEST(name_of(lookup.miss) == "corrupt");
    BOOST_TEST(lookup.detail.find(reason) != std::string::npos, lookup.detail);
    BOOST_TEST(store.put(sample_key(), sample_entry()));
    BOOST_TEST(store.get(sample_key()).entry.has_value());
  };
  chmod(path.c_str(), 0622);
  check("can be written by other users");
  if (geteuid() == 0 && chown(path.c_str(), 65534, 65534) == 0) check("belongs to another user");
  BOOST_TEST(store.usable());
  BOOST_TEST(warnings.all().empty());
}

BOOST_AUTO_TEST_CASE(appears_after_the_store) {
  DiskStore early(directory, nullptr);
  DiskStore(directory, nullptr).put(sample_key(), sample_entry());
  BOOST_TEST(early.get(sample_key()).entry.has_value());
}

BOOST_AUTO_TEST_CASE(cannot_be_made) {
  const std::string below = scratch.path("readonly") + "/a/b";
  fs::create_directory(scratch.path("readonly"));
  chmod(scratch.path("readonly").c_str(), 0555);
  chmod(scratch.path("").c_str(), 0755);
  const int status = in_child([&] {
    if (geteuid() == 0 && setuid(65534) != 0) return 77;  // root may write anywhere
    Warnings warnings;
    DiskStore store(below, warnings.sink());
    if (!store.usable()) return 1;
    for (int i = 0; i < 3; ++i) {
      if (store.get(sample_key()).miss != Miss::absent) return 2;
      if (store.put(sample_key(), sample_entry())) return 3;
    }
    return warnings.all().size() == 1 && store.counters().publish_failures == 3 ? 0 : 4;
  });
  if (status == 77)
    BOOST_TEST_MESSAGE("skipped: root here, and it cannot become another user");
  else
    BOOST_TEST(status == 0);
}

BOOST_AUTO_TEST_CASE(an_unreadable_entry_is_a_miss) {
  chmod(scratch.path("").c_str(), 01777);
  const int status = in_child([&] {
    if (geteuid() == 0 && setuid(65534) != 0) return 77;
    DiskStore store(directory, nullptr);
    if (!store.put(sample_key(), sample_entry())) return 1;
    chmod(path_of(store, sample_key()).c_str(), 0);
    if (store.get(sample_key()).miss != Miss::unreadable) return 2;
    if (!store.put(sample_key(), sample_entry())) return 3;  // replaced all the same
    return store.get(sample_key()).entry ? 0 : 4;
  });
  if (status == 77)
    BOOST_TEST_MESSAGE("skipped: root here, and it cannot become another user");
  else
    BOOST_TEST(status == 0);
}

BOOST_AUTO_TEST_CASE(relative_path_outlives_the_working_directory) {
  const int status = in_child([&] {
    fs::current_path(scratch.path(""));
    DiskStore store("relative/cache", nullptr);
    fs::current_path("/");
    if (!store.put(sample_key(), sample_entry())) return 1;
    return store.directory() == scratch.path("relative/cache") &&
                   fs::exists(scratch.path("relative/cache/v1"))
               ? 0
               : 2;
  });
  BOOST_TEST(status == 0);
}

BOOST_AUTO_TEST_CASE(a_throwing_logger_is_survived) {
  DiskStore store("", [](std::string_view) { throw 1; });
  BOOST_TEST(!store.put(sample_key(), sample_entry()));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kiln::cache::test

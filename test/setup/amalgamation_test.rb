# frozen_string_literal: true

require "test_helper"
require "open3"
require "tmpdir"
require_relative "../../bin/support/amalgamation"

# How bin/package joins C files.
class AmalgamationTest < Minitest::Test
  # @return [Array<String>] what the program prints, one unit after another compiled and linked
  def compiled(files)
    Dir.mktmpdir do |folder|
      write(folder, files)
      amalgamation = Amalgamation.new(folder)
      @units = amalgamation.units
      Dir.mkdir(File.join(folder, "out"))
      joined = amalgamation.files
      write(File.join(folder, "out"), joined)
      output, status = Open3.capture2e("cc", "-Wall", "-Werror", *joined.keys, "-o", "program",
                                       chdir: File.join(folder, "out"))
      assert_predicate status, :success?, output
      Open3.capture2("./program", chdir: File.join(folder, "out")).first
    end
  end

  def write(folder, files)
    files.each do |name, text|
      path = File.join(folder, name)
      Dir.mkdir(File.dirname(path)) unless File.directory?(File.dirname(path))
      File.write(path, text)
    end
  end

  MAIN = "#include <stdio.h>\n#include \"net/part.h\"\nint main(void) { printf(\"%d %d\", part(), other()); }\n"
  PART = { "net/part.h" => "#pragma once\nint part(void);\nint other(void);\n", "main.c" => MAIN }.freeze

  def test_files_that_share_a_header_become_one
    printed = compiled(**PART, "net/a.c" => "#include \"part.h\"\nint part(void) { return 1; }\n",
                               "net/b.c" => "#include \"net/part.h\"\nint other(void) { return 2; }\n")

    assert_equal "1 2", printed
    assert_equal [%w[main.c net/a.c net/b.c]], @units
  end

  ALIKE = { "a.c" => "static int count(void) { return 1; }\nint part(void) { return count(); }\n",
            "b.c" => "typedef struct { int count; } item;\n" \
                     "static const item list[] = {{.count = 2}}, *first = list;\n" \
                     "static int count(void) { return first->count; } // \"count\"\n" \
                     "int other(void) { return count(); }\n" }.freeze

  def test_static_functions_of_the_same_name_are_told_apart
    assert_equal "1 2", compiled(**PART, **ALIKE)
    assert_equal [%w[a.c b.c main.c]], @units
  end

  def test_member_that_a_header_declares_keeps_its_name
    header = { "net/part.h" => "#{PART["net/part.h"]}typedef struct { int count; } item;\n" }
    uses = "#include \"net/part.h\"\nstatic const item one = {.count = 5};\n" \
           "static int count(void) { return one.count; }\nint other(void) { return count(); }\n"

    assert_equal "1 5", compiled(**PART, **header, "a.c" => ALIKE["a.c"], "b.c" => uses)
    assert_equal [%w[a.c b.c main.c]], @units
  end

  def test_macro_of_a_file_ends_with_it
    printed = compiled(**PART, "a.c" => "#define COUNT 1\nint part(void) { return COUNT; }\n",
                               "b.c" => "static int add(int COUNT) { return COUNT + 1; }\n" \
                                        "int other(void) { return add(3); }\n")

    assert_equal "1 4", printed
    assert_equal [%w[a.c b.c main.c]], @units
  end

  def test_types_and_values_of_the_same_name_clash
    { "static const int count[] = {1}, more = 2;\nint use(void) { return more; }\nstatic int (*get)(void);" =>
        "enum { count, more };\nstatic int get;\nint use2(void) { return get; }",
      "struct count { int a; };" => "struct count { long b; };",
      "NORETURN(static void count(int (*)(void)));" => "static int count = COMPUTE(1000);" }.each do |first, second|
      sources = [first, second].map { |text| Amalgamation::Source.read("a.c", text) }

      refute_empty sources[0].clashes([sources[1]]), first
      refute_includes sources[1].names, "COMPUTE"
    end
  end

  def test_files_to_which_macros_give_the_same_name_are_apart
    table = { "net/part.h" => "#{PART["net/part.h"]}#define TABLE(x) \\\n static int library = x\n" }
    first, second = [%w[1 part], %w[2 other]].map do |value, name|
      "#include \"net/part.h\"\nTABLE(#{value});\nint #{name}(void) { return library; }\n"
    end
    printed = compiled(**PART, **table, "a.c" => first, "b.c" => second)

    assert_equal "1 2", printed
    assert_equal [%w[a.c main.c], %w[b.c]], @units
  end

  def test_words_in_comments_strings_and_functions_do_not_keep_files_apart
    sources = ["static int one(void) { int count = 1; return count; }",
               "/* one */ static const char *two = \"one\"; int f(void) { int count = 2; return count; }"]
    first, second = sources.map { |text| Amalgamation::Source.read("a.c", text) }

    assert_empty first.clashes([second])
  end

  def test_header_inside_of_a_condition_is_there_for_others_too
    others = "int part(void) { return 3; }\nint other(void) { return 4; }\n"
    printed = compiled(**PART, "net/a.c" => "#if 0\n#include \"part.h\"\n#endif\nint a(void) { return 0; }\n",
                               "net/b.c" => "#include \"part.h\"\n#{others}")

    assert_equal "3 4", printed
  end

  def test_files_without_ruby_and_files_that_speak_to_the_systems_headers_are_apart
    compiled(**PART, "net/a.c" => "#define _DARWIN_C_SOURCE 1\n#include \"part.h\"\nint part(void) { return 1; }\n",
                     "net/b.c" => "#include \"part.h\"\nint other(void) { return 2; }\n")

    assert_equal [%w[main.c net/b.c], %w[net/a.c]], @units
  end

  def test_every_c_file_of_the_extension_is_in_one_unit
    files = Dir.glob("**/*.c", base: File.join(ROOT, "ext/heddle"))
    units = Amalgamation.new(File.join(ROOT, "ext/heddle")).units

    assert_equal files.sort, units.flatten.sort
    assert_operator units.size, :<, 15
  end
end

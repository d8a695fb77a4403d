# frozen_string_literal: true

# test: once

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

  def test_files_that_name_something_alike_are_apart
    { "static int count(void) { return 1; }" => "static int count(void) { return 2; }",
      "static const int count[] = {1}, more = 2;\nint use(void) { return more; }\nstatic int (*get)(void);" =>
        "enum { count, more };\nstatic int get;\nint use2(void) { return get; }",
      "struct count { int a; };" => "struct count { long b; };",
      "#define COUNT 1" => "int f(int COUNT) { return COUNT; }" }.each do |first, second|
      sources = [first, second].map { |text| Amalgamation::Source.read("a.c", text) }

      refute sources[0].fits?(sources[1]), first
      refute sources[1].fits?(sources[0]), first
    end
  end

  def test_macro_of_a_header_declares_names_in_the_file_that_calls_it
    first = Amalgamation::Source.read("a.c", "TABLE(X);\n", { "TABLE" => "x) \\\n static int library" })
    second = Amalgamation::Source.read("b.c", "typedef struct { int a; } library;\n")

    refute first.fits?(second)
  end

  def test_words_in_comments_strings_and_functions_do_not_keep_files_apart
    sources = ["static int one(void) { int count = 1; return count; }",
               "/* one */ static const char *two = \"one\"; int f(void) { int count = 2; return count; }"]
    first, second = sources.map { |text| Amalgamation::Source.read("a.c", text) }

    assert first.fits?(second)
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
    assert_operator units.size, :<, 50
  end
end

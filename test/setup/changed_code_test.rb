# frozen_string_literal: true

require "test_helper"
require_relative "../../bin/support/changed_code"

# What of a file is code. That git's answers are read rightly, test/setup/nightly_test.rb shows.
class ChangedCodeTest < Minitest::Test
  def test_comments_indentation_and_blank_lines_of_ruby_are_no_code
    code = "# frozen_string_literal: true\nputs \"# é\"\nx = 1\n"

    assert_equal code.b, ChangedCode.code_of("a.rb", <<~RUBY)
      # frozen_string_literal: true

      # A comment: é
      puts "# é" # another
      =begin
      a third
      =end
        x = 1
    RUBY
  end

  def test_what_programs_read_of_comments_is_code
    refute_equal ChangedCode.code_of("a.rb", "# test: once\n1"), ChangedCode.code_of("a.rb", "# test: long\n1")
  end

  def test_other_files_are_compared_as_they_are
    refute_equal ChangedCode.code_of("a.js", "// a\n1"), ChangedCode.code_of("a.js", "// b\n1")
  end

  def test_an_unknown_commit_is_nothing_to_compare_with
    assert_nil ChangedCode.new(ROOT).since("0" * 40)
    assert_nil ChangedCode.new(ROOT).since("abc+changes")
  end
end

# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require_relative "../../bin/support/changed_code"

# What of a file is code, and which files have changed.
class ChangedCodeTest < Minitest::Test
  def test_comments_of_ruby_are_no_code
    code = "# frozen_string_literal: true\n\nputs \"# é\"\n  x = 1\n"

    assert_equal code.b, ChangedCode.code_of("a.rb", <<~RUBY)
      # frozen_string_literal: true

      # A comment: é
      puts "# é" # another
      =begin
      a third
      =end
        x = 1
        # a fourth
    RUBY
  end

  def test_blank_lines_and_indentation_of_strings_in_ruby_are_code
    codes = ["<<~A\n  a\n\n  b\nA\n", "<<~A\n  a\n  b\nA\n", "<<~A\n  a\n    b\nA\n", "<<~A\n  a\n  b # c\nA\n"]

    assert_equal codes, codes.map { |code| ChangedCode.code_of("a.rb", code) }.uniq
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

  def test_changed_renamed_deleted_and_untracked_files_have_changed
    Dir.mktmpdir("a folder é") do |root|
      ["same.rb", "changed é.rb", "old name.rb", "gone.rb"].each { |name| File.write(File.join(root, name), name) }
      git root, "init", "-q"
      commit root
      first = IO.popen(["git", "-C", root, "rev-parse", "HEAD"], &:read).strip
      File.write(File.join(root, "same.rb"), "# a comment\nsame.rb")
      File.write(File.join(root, "changed é.rb"), "1")
      File.rename(File.join(root, "old name.rb"), File.join(root, "new name.rb"))
      File.unlink(File.join(root, "gone.rb"))
      commit root
      File.write(File.join(root, "untracked"), "")

      assert_equal ["changed é.rb".b, "gone.rb", "new name.rb", "old name.rb", "untracked"],
                   ChangedCode.new(root).since(first).sort
    end
  end

  private

  def git(root, *arguments)
    system("git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments, chdir: root, exception: true)
  end

  def commit(root)
    git root, "add", "-A"
    git root, "commit", "-qm", "x"
  end
end

# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "open3"
require "tmpdir"

# bin/size in a small repository.
class SizeTest < Minitest::Test
  def setup
    @folder = Dir.mktmpdir
    write("lib/a.rb", "# a comment\n\nputs 1 # with a comment behind it\n=begin\nputs 2\n=end\n")
    write("ext/b.c", "/*\n a\n*/\nchar *text = \"/* no comment\";\n// a comment\nint x; /* b */\nchar *end = \"*/\";\n")
    FileUtils.mkdir_p(File.join(@folder, "bin"))
    FileUtils.cp(File.join(ROOT, "bin/size"), File.join(@folder, "bin"))
    FileUtils.mkdir(File.join(@folder, "bin/support"))
    FileUtils.cp(File.join(ROOT, "bin/support/help.rb"), File.join(@folder, "bin/support"))
    git("init", "-q")
    git("add", ".")
    git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "first")
  end

  def teardown = FileUtils.rm_rf(@folder)

  def test_lines_are_counted_without_blanks_and_comments
    assert_match(/^C +3\nRuby +1\nall +4\n/, size)
  end

  def test_files_that_are_not_committed_are_compared_with_a_commit
    write("lib/new/c.rb", "1\n2\n")

    assert_match(/^C +3 +3 +\+0\nRuby +1 +3 +\+2\nall +4 +6 +\+2\n/, size("HEAD"))
    assert_match(%r{^lib/new +0 +2 +\+2$}, size("HEAD"))
  end

  def test_two_commits_are_compared_with_each_other
    write("lib/new/c.rb", "1\n2\n")

    assert_match(/^all +4 +4 +\+0$/, size("HEAD", "HEAD"))
  end

  private

  def write(path, text)
    path = File.join(@folder, path)
    FileUtils.mkdir_p(File.dirname(path))
    File.write(path, text)
  end

  def git(*) = assert(system("git", *, chdir: @folder))

  def size(*)
    output, status = Open3.capture2e(RbConfig.ruby, File.join(@folder, "bin/size"), *)

    assert_predicate status, :success?, output
    output
  end
end

# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "open3"
require "tmpdir"

# .ci/run in a folder where the programs that it starts are stand-ins, which do what a variable says.
class CIRunTest < Minitest::Test
  PROGRAMS = {
    "bin/setup" => "printf '\\t\\t3.3.8\\t\\t./ruby\\n\\t\\t3.4.1\\t\\t./ruby\\n' >tmp/ci/rubies",
    "ruby" => "case $* in *--changed*) eval \"${C:-:}\" ;; *gem_check*) eval \"${GEM:-:}\" ;; esac",
    "bin/sanitize" => ":",
    "bin/lint" => "eval \"${LINT:-:}\"",
    "bin/test" => "eval \"${TESTS:-echo 3 passed, 0 failed, 0 skipped}\""
  }.freeze
  # It says that it has begun, and ends by a signal only.
  WAIT = "echo begun >&$PIPE; sleep 1000; true"
  private_constant :PROGRAMS, :WAIT

  def setup
    @root = File.join(Dir.mktmpdir, "a folder")
    FileUtils.mkdir_p(File.join(@root, ".ci"))
    FileUtils.mkdir_p(File.join(@root, "bin"))
    FileUtils.cp(File.join(ROOT, ".ci/run"), File.join(@root, ".ci/run"))
    PROGRAMS.each { |path, program| File.write(File.join(@root, path), "#!/bin/bash\n#{program}\n", perm: 0o755) }
  end

  def teardown = FileUtils.rm_rf(File.dirname(@root))

  def test_good_run_ends_with_the_closing_line_of_the_tests
    output, status = run_ci

    assert_predicate status, :success?
    assert_equal "3 passed, 0 failed, 0 skipped\n", output.lines.last
  end

  def test_failed_check_beside_the_tests_is_shown_and_counts_as_a_failed_test
    { "LINT" => "lint", "GEM" => "gem check" }.each do |name, said|
      output, status = run_ci(name => "echo wrong #{said}; exit 1")

      refute_predicate status, :success?
      assert_includes output, "\nwrong #{said}\n"
      assert_equal "3 passed, 1 failed, 0 skipped\n", output.lines.last
    end
  end

  def test_failed_test_fails_the_run
    output, status = run_ci("TESTS" => "echo 2 passed, 1 failed, 0 skipped; exit 1")

    refute_predicate status, :success?
    assert_equal "2 passed, 1 failed, 0 skipped\n", output.lines.last
  end

  def test_program_of_the_tests_that_ends_without_a_closing_line_fails_the_run
    output, status = run_ci("TESTS" => "echo bin/setup: a b c; exit 1", "LINT" => "exit 1")

    refute_predicate status, :success?
    assert_equal "bin/setup: a b c\n", output.lines.last
  end

  def test_signal_ends_the_tests_and_the_checks
    waiting(3, "TESTS" => WAIT, "LINT" => WAIT, "GEM" => WAIT) { |pid| Process.kill(:TERM, pid) }
  end

  def test_failed_stage_ends_the_checks
    waiting(1, "LINT" => WAIT, "C" => "read -r <go; exit 1") { File.write(File.join(@root, "go"), "\n") }
  end

  private

  def run_ci(environment = {})
    Open3.capture2e(environment, "./.ci/run", chdir: @root, in: File::NULL)
  end

  # Yields its process id when so many programs wait, and returns when all of them have ended.
  def waiting(programs, environment)
    File.mkfifo(File.join(@root, "go"))
    reader, writer = IO.pipe
    writer.close_on_exec = false
    environment = environment.merge("PIPE" => writer.fileno.to_s)
    pid = spawn(environment, "./.ci/run", chdir: @root, in: File::NULL, out: File::NULL, err: File::NULL)
    writer.close
    programs.times { reader.gets }
    yield pid
    _, status = Process.wait2(pid)

    refute_predicate status, :success?
    assert_empty reader.read
  end
end

# frozen_string_literal: true

# test: long

require "test_helper"
require "fileutils"
require "stringio"
require "tmpdir"
require_relative "../../bin/support/test_runner"

# bin/test on a project made for the purpose.
class TestRunnerTest < Minitest::Test
  def setup
    @root = Dir.mktmpdir
    FileUtils.mkdir_p(File.join(@root, "test/scheduler"))
    FileUtils.cp_r(File.join(ROOT, "test/support"), File.join(@root, "test"))
    write "test/test_helper.rb", <<~RUBY
      require "minitest/autorun"
      require_relative "support/result_reporter"
    RUBY
    @out = StringIO.new
  end

  def teardown
    FileUtils.rm_rf(@root)
  end

  def test_the_closing_line_is_the_last_and_sums_over_all_runs
    write_test "test/a_test.rb", "def test_one = pass", "def test_two = skip('needs a thing')"
    write_test "test/b_test.rb", "def test_one = flunk", "def test_two = pass"

    refute run_files("test/a_test.rb", "test/b_test.rb").close(ci: false)
    assert_equal "2 passed, 1 failed, 1 skipped", lines.last
    assert_includes lines, "skipped: ATest#test_two: needs a thing"
    assert_includes lines, "failed: 9.9 test/b_test.rb BTest#test_one: Epic Fail!"
  end

  def test_failed_files_can_be_run_again_in_the_same_order_and_settings
    write_test "test/scheduler/a_test.rb", 'def test_one = ENV["HEDDLE_SELECTOR"] ? flunk : pass', "def test_two = pass"
    run_files("test/scheduler/a_test.rb", arguments: %w[-n test_one --seed 7]).close(ci: false)

    assert_includes lines, "  once more: HEDDLE_SELECTOR=epoll #{RbConfig.ruby} -Ilib -Itest " \
                           "test/scheduler/a_test.rb -n test_one --seed 7"
  end

  def test_the_slowest_files_are_named_when_they_are_asked_for
    write_test "test/a_test.rb", "def test_one = sleep(0.05)"
    write_test "test/b_test.rb", "def test_one = pass"
    run_files("test/a_test.rb", "test/b_test.rb", durations: 2).close(ci: false)

    assert_equal 2, lines.grep(%r{\A\d\.\d s: test/[ab]_test.rb \(1 times, at most}).size
  end

  def test_long_files_come_first
    %w[a b].each { |name| write_test "test/#{name}_test.rb", "def test_one = pass" }
    path = File.join(@root, "test/b_test.rb")
    File.write(path, "# test: long\n#{File.read(path)}")
    run_files("test/a_test.rb", "test/b_test.rb", jobs: 1)

    assert_equal %w[b a], lines.filter_map { |line| line[%r{test/(.)_test.rb: 1 passed}, 1] }
  end

  def test_a_skip_fails_the_run_in_ci_only
    write_test "test/a_test.rb", "def test_one = pass", "def test_two = skip"
    report = run_files("test/a_test.rb")

    assert report.close(ci: false)
    refute report.close(ci: true)
  end

  # Fails the first time only.
  def write_unsteady(path) = write_test(path, "def test_one = (File.exist?('seen') || File.write('seen', '') && flunk)")

  def test_a_file_that_passes_on_retry_is_named_and_not_a_failure
    write_unsteady "test/a_test.rb"

    assert run_files("test/a_test.rb", retries: 1).close(ci: true)
    assert_includes lines, "unsteady, passed the second time: 9.9 test/a_test.rb ATest#test_one: Epic Fail!"
    assert_match(/once more: .* --seed \d+$/, @out.string)
    assert_equal "1 passed, 0 failed, 0 skipped", lines.last
  end

  def test_a_file_that_fails_twice_is_one_failure
    write_test "test/a_test.rb", "def test_one = flunk", "def test_two = pass"

    refute run_files("test/a_test.rb", retries: 1).close(ci: true)
    assert_equal "1 passed, 1 failed, 0 skipped", lines.last
    assert_equal 1, lines.grep(/^failed: /).size
  end

  def test_retries_are_limited_and_off_by_default
    write_unsteady "test/a_test.rb"
    write_test "test/b_test.rb", "def test_one = flunk"

    refute run_files("test/b_test.rb", "test/a_test.rb", jobs: 1, retries: 1).close(ci: true)
    assert_equal "0 passed, 2 failed, 0 skipped", lines.last
    FileUtils.rm_f(File.join(@root, "seen"))
    refute run_files("test/a_test.rb").close(ci: true)
  end

  def test_a_crash_gets_no_second_time
    write_test "test/a_test.rb", "def test_one = File.exist?('seen') || die",
               "def die = (File.write('seen', '') && Process.kill(:KILL, Process.pid))"

    refute run_files("test/a_test.rb", retries: 1).close(ci: true)
    assert_equal "0 passed, 1 failed, 0 skipped", lines.last
  end

  def test_a_file_that_dies_counts_as_failed
    write_test "test/a_test.rb", "def test_one = Process.kill(:KILL, Process.pid)"
    write_test "test/b_test.rb", "def test_one = pass"

    refute run_files("test/a_test.rb", "test/b_test.rb").close(ci: false)
    assert_equal "1 passed, 1 failed, 0 skipped", lines.last
    assert_match(/^failed: .*SIGKILL.*, in ATest#test_one$/, @out.string)
  end

  def test_a_crash_report_of_ruby_is_shortened
    write_test "test/a_test.rb", "def test_one = Process.kill(:SEGV, Process.pid)"

    refute run_files("test/a_test.rb").close(ci: false)
    assert_match(/^failed: .*SIG(SEGV|ABRT).*, in ATest#test_one$/, @out.string)
    assert_match(/\[BUG\] Segmentation fault/, @out.string)
    refute_match(/^ *\d+ \S+\.(rb|so)$|^ *\h+-\h+ r-xp /, @out.string)
    assert_match(/once more: .* --seed \d+$/, @out.string)
  end

  def test_a_file_that_ends_badly_after_its_tests_counts_as_failed
    write_test "test/a_test.rb", "def test_one = pass", "Minitest.after_run { exit!(3) }"

    refute run_files("test/a_test.rb").close(ci: false)
    assert_includes @out.string, "exit 3"
  end

  def test_a_file_that_hangs_is_ended
    write_test "test/a_test.rb", "def test_one = sleep"

    refute run_files("test/a_test.rb", limit: 0.5).close(ci: false)
    assert_match(/still running after 0.5 s/, @out.string)
  end

  def test_a_run_without_any_test_is_not_good
    refute run_files.close(ci: false)
    assert_includes lines, "No test was run."
  end

  def test_only_files_that_depend_on_the_selector_run_with_each
    write_test "test/scheduler/a_test.rb", "def test_one = pass"
    write_test "test/b_test.rb", "def test_one = pass"
    write_test "test/c_test.rb", "def test_one = pass", head: "# test: each selector"
    write_test "test/scheduler/d_test.rb", "def test_one = pass", head: "# test: once"

    planned = runner.plan(%w[test/scheduler/a_test.rb test/b_test.rb test/c_test.rb test/scheduler/d_test.rb])
                    .map { |process| [process.file, process.selector] }

    assert_equal [["test/scheduler/a_test.rb", nil], ["test/scheduler/a_test.rb", "epoll"], ["test/b_test.rb", nil],
                  ["test/c_test.rb", nil], ["test/c_test.rb", "epoll"], ["test/scheduler/d_test.rb", nil]],
                 planned
  end

  def test_each_selector_has_its_turn_on_each_ruby
    write_test "test/scheduler/a_test.rb", "def test_one = pass"
    rubies = [ruby, ruby.with(version: "9.8", selectors: %w[io_uring select])]
    planned = runner(rubies:).plan(%w[test/scheduler/a_test.rb])
                             .map { |process| [process.ruby.version, process.selector] }

    assert_equal [["9.9", nil], ["9.9", "epoll"], ["9.8", nil], ["9.8", "select"]], planned
  end

  def test_the_selector_reaches_the_test
    write_test "test/scheduler/a_test.rb", 'def test_one = assert_equal("epoll", ENV["HEDDLE_SELECTOR"])'

    refute run_files("test/scheduler/a_test.rb").close(ci: false)
    assert_equal "1 passed, 1 failed, 0 skipped", lines.last
  end

  def test_a_test_can_be_interrupted_even_under_a_shell_that_ignores_it
    write_test "test/a_test.rb", "def test_one = assert_raises(Interrupt) { Process.kill(:INT, Process.pid); sleep 5 }"
    before = trap(:INT, "IGNORE")

    assert run_files("test/a_test.rb").close(ci: false)
  ensure
    trap(:INT, before)
  end

  def test_names_choose_tests
    write_test "test/a_test.rb", "def test_one = pass", "def test_two = pass"

    assert run_files("test/a_test.rb", arguments: %w[-n test_two]).close(ci: false)
    assert_equal "1 passed, 0 failed, 0 skipped", lines.last
  end

  def test_a_program_with_a_closing_line_of_its_own_is_counted
    report = runner.run([], commands: { "C" => [RbConfig.ruby, "-e", "puts '3 passed, 1 failed'; exit 1"] })

    refute report.close(ci: false)
    assert_equal "3 passed, 1 failed, 0 skipped", lines.last
  end

  private

  def write(path, content) = File.write(File.join(@root, path), content)

  def write_test(path, *body, head: "")
    name = "#{File.basename(path)[0].upcase}Test"
    write path, "#{head}\nrequire 'test_helper'\nclass #{name} < Minitest::Test\n#{body.join("\n")}\nend\n"
  end

  def ruby
    environment = ENV.to_h.slice("GEM_HOME", "GEM_PATH")
    TestInterpreter.new(version: "9.9", abi: "9.9.0", path: RbConfig.ruby, selectors: %w[io_uring epoll], environment:)
  end

  def runner(rubies: [ruby], **) = TestRunner.new(rubies:, root: @root, jobs: 2, out: @out, **)

  def run_files(*files, **) = runner(**).run(files)

  def lines = @out.string.lines(chomp: true)
end

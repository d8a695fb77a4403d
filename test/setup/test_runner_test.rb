# frozen_string_literal: true

# test: long

require "test_helper"
require "fileutils"
require "open3"
require "stringio"
require "tmpdir"
require_relative "../../bin/support/test_runner"

# bin/test on a project made for the purpose.
class TestRunnerTest < Minitest::Test
  def setup
    @root = Dir.mktmpdir
    FileUtils.mkdir_p(File.join(@root, "test/scheduler"))
    FileUtils.cp_r(File.join(ROOT, "test/support"), File.join(@root, "test"))
    share_code_cache
    write "test/test_helper.rb", <<~RUBY
      require "minitest/autorun"
      def Minitest.load_plugins = nil
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

  # Beyond what the start takes.
  BUSY = "def cpu_time = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)\n" \
         "def busy = (limit = cpu_time + 1) && (nil until cpu_time > limit)"

  def test_files_that_cost_most_processor_time_are_named_when_asked_for
    write_test "test/a_test.rb", "def test_one = pass"
    write_test "test/b_test.rb", "def test_one = busy", BUSY
    run_files("test/a_test.rb", "test/b_test.rb", durations: 2).close(ci: false)
    named = lines.filter_map { |line| line[%r{\A\d\.\d s of processor time, .*: test/(.)_test.rb \(1 runs, max}, 1] }

    assert_equal %w[b a], named
    assert_match(/^tests: \d+ s, \d+ s of processor time$/, lines[-2])
  end

  def test_processor_time_of_a_file_includes_that_of_programs_that_it_started
    write_test "test/a_test.rb", "def test_one = Process.wait(fork { busy })", BUSY
    run_files("test/a_test.rb")

    assert_operator lines.first[/([\d.]+) s of processor time/, 1].to_f, :>=, 1
  end

  def test_long_files_come_first
    %w[a b].each { |name| write_test "test/#{name}_test.rb", "def test_one = pass" }
    path = File.join(@root, "test/b_test.rb")
    File.write(path, "# test: long\n#{File.read(path)}")
    run_files("test/a_test.rb", "test/b_test.rb", jobs: 1)

    assert_equal %w[b a], lines.filter_map { |line| line[%r{test/(.)_test.rb: 1 passed}, 1] }
  end

  # The files wait for each other, which only succeeds if all of them run at once.
  def test_idle_processors_are_filled_up_to_four_times_the_jobs
    names = %w[a b c d e f g h]
    waiting = "def test_one = File.write(\"#{@root}/\" + self.class.name, '') && all"
    all = "require 'timeout'\ndef all = Timeout.timeout(60) { sleep 0.01 until Dir[\"#{@root}/?Test\"].size == 8 }"
    names.each { |name| write_test "test/#{name}_test.rb", waiting, all }
    idle = Struct.new(:change).new(1)
    run_files(*names.map { |name| "test/#{name}_test.rb" }, jobs: 2, fill: idle).close(ci: false)

    assert_equal "8 passed, 0 failed, 0 skipped", lines.last
  end

  def test_busy_processors_run_no_more_files_than_jobs
    write_end = "def test_one = sleep(1) && File.write('#{@root}/ended', '')"
    %w[a b].each { |name| write_test "test/#{name}_test.rb", write_end }
    write_test "test/c_test.rb", "def test_one = assert_path_exists('#{@root}/ended')"
    busy = Struct.new(:change).new(-1)
    run_files(*%w[a b c].map { |name| "test/#{name}_test.rb" }, jobs: 2, fill: busy).close(ci: false)

    assert_equal "3 passed, 0 failed, 0 skipped", lines.last
  end

  def test_a_skip_fails_the_run_in_ci_only
    write_test "test/a_test.rb", "def test_one = pass", "def test_two = skip"
    report = run_files("test/a_test.rb")

    assert report.close(ci: false)
    refute report.close(ci: true)
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

  def test_c_tests_that_passed_are_not_listed_beside_one_that_failed
    write_test "test/a_test.rb", %(def test_one = puts("  ok frames one\n  FAILED frames two Alarm clock") || flunk)

    refute run_files("test/a_test.rb").close(ci: false)
    assert_includes @out.string, "  FAILED frames two Alarm clock\n"
    refute_includes @out.string, "ok frames one"
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
    write_test "test/scheduler/e_test.rb", "def test_one = pass", head: "# test: one selector"
    files = %w[test/scheduler/a_test.rb test/b_test.rb test/c_test.rb test/scheduler/d_test.rb test/scheduler/e_test.rb]

    planned = plan.runs(files).map { |run| [run.file, run.selector] }

    assert_equal [["test/scheduler/a_test.rb", nil], ["test/scheduler/a_test.rb", "epoll"], ["test/b_test.rb", nil],
                  ["test/c_test.rb", nil], ["test/c_test.rb", "epoll"], ["test/scheduler/d_test.rb", nil],
                  ["test/scheduler/e_test.rb", nil]], planned
  end

  def test_each_selector_has_its_turn_on_each_ruby
    write_test "test/scheduler/a_test.rb", "def test_one = pass"
    planned = plan(rubies: [ruby, older]).runs(%w[test/scheduler/a_test.rb])
                                         .map { |run| [run.ruby.version, run.selector] }

    assert_equal [["9.9", nil], ["9.9", "epoll"], ["9.8", nil], ["9.8", "select"]], planned
  end

  # Named in the environment, it would be for loops in Ractors, too, which can't have io_uring.
  def test_default_selector_is_not_named_when_it_is_chosen
    write_test "test/a_test.rb", "def test_one = pass"
    planned = plan(rubies: [ruby, ruby.with(selectors: %w[epoll select])], selectors: %w[io_uring epoll default])
              .runs(%w[test/a_test.rb]).map(&:selector)

    assert_equal [nil, "epoll", "io_uring", nil], planned
  end

  def test_plan_ci_runs_what_depends_on_the_version_and_a_smoke_on_further_rubies
    write_test "test/a_test.rb", "def test_one = pass"
    write_test "test/b_test.rb", "def test_one = pass", head: "# test: smoke"
    write_test "test/c_test.rb", "def test_one = pass", head: "# test: each version"
    write_test "test/scheduler/d_test.rb", "def test_one = pass"
    write_test "test/scheduler/e_test.rb", "def test_one = pass", head: "# test: once"
    write_test "test/scheduler/f_test.rb", "def test_one = pass", head: "# test: one version"
    files = Dir.glob("test/**/*_test.rb", base: @root).sort
    planned = plan(rubies: [older, ruby.with(version: "3.4.9")], name: "ci").runs(files)
                                                                            .group_by { |run| run.ruby.version }
    planned.transform_values! { |runs| runs.map { |run| [run.file[-9], run.selector] } }

    assert_equal [["b", nil], ["c", nil], ["d", nil]], planned["9.8"]
    assert_equal [["a", nil], ["b", nil], ["c", nil], ["d", nil], %w[d epoll], ["e", nil], ["f", nil],
                  %w[f epoll]], planned["3.4.9"]
  end

  def test_plan_ci_runs_everything_on_the_first_ruby_when_its_own_is_missing
    write_test "test/a_test.rb", "def test_one = pass"

    planned = plan(rubies: [ruby, older], name: "ci").runs(%w[test/a_test.rb])

    assert_equal(["9.9"], planned.map { |run| run.ruby.version })
  end

  def test_plan_nightly_runs_every_file_with_each_selector_on_each_ruby
    write_test "test/a_test.rb", "def test_one = pass"
    write_test "test/b_test.rb", "def test_one = pass", head: "# test: once"
    write_test "test/c_test.rb", "def test_one = pass", head: "# test: one selector"
    planned = plan(rubies: [ruby, older], name: "nightly").runs(%w[test/a_test.rb test/b_test.rb test/c_test.rb])

    assert_equal [["9.9", "a", nil], %w[9.9 a epoll], ["9.9", "b", nil], ["9.9", "c", nil], %w[9.9 c epoll],
                  ["9.8", "a", nil], %w[9.8 a select], ["9.8", "b", nil], ["9.8", "c", nil], %w[9.8 c select]],
                 planned.map { |run| [run.ruby.version, run.file[-9], run.selector] }
  end

  def test_in_ci_every_folder_of_tests_has_a_smoke_on_further_rubies
    folders = files_of_checkout.map { |file| File.dirname(file) }.grep_v(%r{\Atest/(?:benchmark/|fuzz)})

    assert_empty folders.uniq - files_on_further_rubies_in_ci.map { |file| File.dirname(file) }
  end

  # There they are not installed, and in CI a skipped test fails.
  def test_in_ci_no_test_on_further_rubies_needs_the_gems_of_an_example
    needing = /ServedExample\.(?:gems\?|bundle)|\bneed_board\b|bundled: true/

    assert_empty(files_on_further_rubies_in_ci.select { |file| File.read(File.join(ROOT, file)).match?(needing) })
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

  def test_c_tests_of_which_none_has_changed_are_no_failure
    command = [RbConfig.ruby, File.join(ROOT, "test/c/run"), "--changed", "no_such_test"]
    runner.run([], commands: { "C tests" => command })

    assert_match(/\AC tests: no test \(/, lines.first)
  end

  # Forks of a process that is not this one, which would run its own tests at their ends.
  def run_forked(*files)
    program = <<~RUBY
      require "#{ROOT}/bin/support/test_runner"
      ruby = TestInterpreter.new(version: "9.9", abi: "9.9.0", path: RbConfig.ruby, selectors: %w[io_uring epoll],
                                 environment: { "BUNDLER_VERSION" => "9.9" })
      plan = TestPlan.new(root: "#{@root}", rubies: [ruby])
      runner = TestRunner.new(plan:, root: "#{@root}", jobs: 2, fork: true)
      exit runner.run(#{files}).close(ci: false)
    RUBY
    output, status = Open3.capture2e({ "BUNDLER_VERSION" => nil }, RbConfig.ruby, "-e", program)
    @out << output
    status
  end

  def test_forked_file_begins_as_its_command_does
    seen = "[$PROGRAM_NAME, ARGV, Dir.pwd, $stdin.read, $stdout.sync, $:.first(2), ENV['BUNDLER_VERSION'], " \
           "Process.getpgrp == Process.pid]"
    write_test "test/scheduler/a_test.rb", "def test_one = pass",
               head: "File.write('seen' + ENV['HEDDLE_SELECTOR'].to_s, #{seen}.inspect)"

    assert_predicate run_forked("test/scheduler/a_test.rb"), :success?, @out.string
    folders = %w[lib test].map { |folder| File.join(@root, folder) }
    expected = ["test/scheduler/a_test.rb", [], @root, "", false, folders, "9.9", true].inspect

    assert_equal([expected] * 2, %w[seen seenepoll].map { |file| File.read(File.join(@root, file)) })
  end

  def test_forked_files_fail_by_themselves_only
    write_test "test/a_test.rb", "def test_one = Process.kill(:KILL, Process.pid)"
    write_test "test/b_test.rb", "def test_one = flunk", "def test_two = pass"
    write "test/c_test.rb", "raise 'not even loaded'"
    write_test "test/d_test.rb", "def test_one = refute(defined?(BTest))"

    refute_predicate run_forked(*%w[a b c d].map { |name| "test/#{name}_test.rb" }), :success?
    assert_match(/^9.9 test.c_test.rb: .*\n(?:.*\n)*?.*not even loaded/, @out.string)
    assert_equal "2 passed, 3 failed, 0 skipped", lines.last
  end

  private

  # Without it each process would compile RubyGems and Minitest for a cache of its own.
  def share_code_cache
    FileUtils.mkdir_p([File.join(@root, "tmp"), File.join(ROOT, "tmp/code")])
    File.symlink(File.join(ROOT, "tmp/code"), File.join(@root, "tmp/code"))
  end

  def write(path, content) = File.write(File.join(@root, path), content)

  def write_test(path, *body, head: "")
    name = "#{File.basename(path)[0].upcase}Test"
    write path, "#{head}\nrequire 'test_helper'\nclass #{name} < Minitest::Test\n#{body.join("\n")}\nend\n"
  end

  def ruby
    environment = ENV.to_h.slice("GEM_HOME", "GEM_PATH")
    TestInterpreter.new(version: "9.9", abi: "9.9.0", path: RbConfig.ruby, selectors: %w[io_uring epoll], environment:)
  end

  def older = ruby.with(version: "9.8", selectors: %w[io_uring select])

  def files_of_checkout = TestRunner.files([File.join(ROOT, "test")])

  def files_on_further_rubies_in_ci
    rubies = [ruby.with(version: "#{TestPlan::WHOLE_ON}.0"), older]
    TestPlan.new(root: ROOT, rubies:, name: "ci").runs(files_of_checkout)
            .select { |run| run.ruby == older }.map(&:file)
  end

  def plan(rubies: [ruby], **) = TestPlan.new(root: @root, rubies:, **)

  def runner(**) = TestRunner.new(plan:, root: @root, jobs: 2, out: @out, **)

  def run_files(*files, **) = runner(**).run(files)

  def lines = @out.string.lines(chomp: true)
end

# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "stringio"
require "tmpdir"
require_relative "../../bin/support/nightly"
require_relative "../../bin/support/test_runner"

# .ci/nightly with stages of its own, in a folder that is a repository.
class NightlyTest < Minitest::Test
  def setup
    @root = Dir.mktmpdir
    FileUtils.mkdir_p([File.join(@root, ".ci"), File.join(@root, "test/net"), File.join(@root, "ext/heddle/net")])
    write "test/net/a_test.rb", "# a test"
    write "ext/heddle/net/a.c", "/* C */"
    write ".gitignore", "/tmp/\n"
    git "init", "-q"
    commit
    @out = StringIO.new
  end

  def teardown = FileUtils.rm_rf(@root)

  def test_result_of_each_stage_is_written_with_counts_date_and_commit
    assert nightly(stage("tests", "puts '3 passed, 0 failed, 1 skipped'"), stage("bench", "puts 1")).run
    content = results

    assert_equal "passed", content["result"]
    assert_match(/\A\h{12}\z/, content["commit"])
    assert_equal ["passed", 3, 0, 1, content["commit"]],
                 content.dig("stages", "tests").values_at("result", "passed", "failed", "skipped", "commit")
    assert_equal [1, 0, 0], content.dig("stages", "bench").values_at("passed", "failed", "skipped")
    assert_match(/\A\d{4}-\d\d-\d\dT/, content.dig("stages", "bench", "date"))
  end

  def test_what_a_stage_leaves_out_is_named_and_the_others_count
    assert nightly(stage("trials", "puts 'not run: a, b', '3 passed, 0 failed, 2 skipped'")).run

    assert_equal ["passed", 3, 2, %w[a b]],
                 results.dig("stages", "trials").values_at("result", "passed", "skipped", "not_run")
    assert_includes @out.string, "not run: a, b\ntrials passed: 3 passed, 0 failed, 2 skipped"
  end

  def test_failed_stage_fails_the_run_and_later_stages_run
    stages = [stage("a", "puts 'the reason', '0 passed, 1 failed'"), stage("b", "exit 3"), stage("c", "puts 1")]

    refute nightly(*stages).run
    assert_equal %w[failed failed passed], results["stages"].values.map { |stage| stage["result"] }
    assert_equal "failed", results["result"]
    assert_includes @out.string, "    the reason\n"
  end

  def test_stage_that_ends_badly_after_good_counts_has_failed
    refute nightly(stage("a", "puts '1 passed, 0 failed'; exit 1")).run
  end

  def test_signal_ends_what_the_stage_has_started
    reader, writer = IO.pipe
    writer.close_on_exec = false
    shell = "echo started >&#{writer.fileno}; \"$0\" --disable=gems -e sleep; true" # it waits, and passes no signal on
    pid = fork do
      nightly(Nightly::Stage.new(name: "a", command: ["sh", "-c", shell, RbConfig.ruby])).run
    ensure
      exit!
    end
    writer.close
    reader.gets
    Process.kill(:TERM, pid)
    Process.wait(pid)

    assert_empty reader.read # until the last of them has ended
  end

  def test_named_stages_run_alone_and_the_result_is_incomplete
    assert nightly(stage("tests one", "puts 1"), stage("tests two", "puts 1"), stage("fuzz", "exit 1")).run(["tests"])
    assert_equal ["tests one", "tests two"], results["stages"].keys
    assert_equal "incomplete", results["result"]
  end

  def test_unknown_stage_is_refused_with_the_known_ones
    error = assert_raises(ArgumentError) { nightly(stage("fuzz", "puts 1")).run(["fuss"]) }

    assert_equal 'no stage begins with "fuss" (there are: fuzz)', error.message
  end

  def test_resumed_run_leaves_out_stages_that_passed_with_this_code
    stages = [stage("a", "File.write('tmp/a', 'x', mode: 'a')"),
              stage("b", "File.write('tmp/b', 'x', mode: 'a'); exit(File.read('tmp/b') == 'xx')")]
    FileUtils.mkdir_p(File.join(@root, "tmp"))

    refute nightly(*stages).run
    assert nightly(*stages).run(resume: true)
    assert_equal "passed", results["result"]
    assert_equal %w[x xx], %w[a b].map { |name| File.read(File.join(@root, "tmp", name)) }
    write "new", ""
    commit

    assert nightly(*stages.take(1)).run(resume: true)
    assert_equal "xx", File.read(File.join(@root, "tmp/a"))
  end

  def test_result_holds_while_only_comments_and_files_that_the_stage_does_not_cover_change
    one = stage("a", "File.write('tmp/a', 'x', mode: 'a')").with(covers: %w[ext/ test/])
    FileUtils.mkdir_p(File.join(@root, "tmp"))
    nightly(one).run
    write "test/net/a_test.rb", "# another comment"
    write "ext/heddle/net/a.c", "/* another */"
    write "page", "text"

    assert_equal "passed", nightly(one).result
    write "ext/heddle/net/a.c", "int a;"

    assert_equal "incomplete", nightly(one).result
    assert nightly(one).run(resume: true)
    assert_equal "xx", File.read(File.join(@root, "tmp/a"))
  end

  def test_resumed_run_runs_files_that_a_change_concerns_and_keeps_the_counts_of_the_whole
    failed = "puts 'failed: 3.4.1 test/net/a_test.rb ATest#test_b: wrong', '7 passed, 1 failed, 0 skipped'; exit 1"
    again = ->(changed) { changed.grep(/_test/) if changed.none?(/ext/) }

    refute nightly(stage("a", failed).with(concerned: again)).run
    assert_equal %w[test/net/a_test.rb], results.dig("stages", "a", "failed_files")
    write TEST, "1"
    commit

    assert nightly(stage("a", "p ARGV; puts '2 passed, 0 failed'").with(concerned: again)).run(resume: true)
    assert_equal %(["#{TEST}"]\n2 passed, 0 failed\n), File.read(File.join(@root, "tmp/nightly/a.log"))
    assert_equal ["passed", 7, 1], results.dig("stages", "a").values_at("result", "passed", "failed")
    refute_includes results.dig("stages", "a"), "failed_files"
    assert_equal [2, 0, [TEST]], results.dig("stages", "a", "again").values_at("passed", "failed", "files")
    assert_equal "passed", results["result"]
  end

  def test_stage_whose_failed_file_no_change_concerns_runs_whole
    failed = "puts 'failed: 3.4.1 test/net/b_test.rb BTest#test_b: wrong', '7 passed, 1 failed, 0 skipped'; exit 1"
    nightly(stage("a", failed).with(concerned: ->(_) { [TEST] })).run
    write TEST, "1"
    commit

    assert nightly(stage("a", "p ARGV").with(concerned: ->(_) { [TEST] })).run(resume: true)
    assert_equal "[]\n", File.read(File.join(@root, "tmp/nightly/a.log"))
  end

  # It ended before it told them, say, or a test was skipped.
  def test_stage_that_failed_without_failed_files_or_with_skipped_tests_runs_whole
    ["puts '7 passed, 0 failed, 0 skipped'; exit 1",
     "puts 'failed: 3.4.1 #{TEST} ATest#test_b: wrong', '7 passed, 1 failed, 1 skipped'; exit 1"].each do |program|
      write TEST, "0"
      commit
      nightly(stage("a", program).with(concerned: ->(_) { [TEST] })).run
      write TEST, "1"
      commit

      refute_equal "passed", nightly(stage("a", "").with(concerned: ->(_) { [] })).result
      assert nightly(stage("a", "p ARGV").with(concerned: ->(_) { [TEST] })).run(resume: true)
      assert_equal "[]\n", File.read(File.join(@root, "tmp/nightly/a.log"))
    end
  end

  def test_result_is_that_of_the_code_with_which_the_run_began
    write TEST, "1"
    commit
    change = "File.write('#{TEST}', '2'); system('git', *%w[-c user.name=a -c user.email=a@b commit -qam x])"

    assert nightly(stage("a", change)).run
    assert_equal "incomplete", nightly(stage("a", "puts 1")).result
    assert nightly(sanitized("File.write('#{TEST}', '3')")).run
    assert_equal [TEST], changed
  end

  def test_stage_beside_the_others_runs_at_the_same_time
    wait_for = ->(name) { "File.write('tmp/#{name}', ''); sleep 0.01 until Dir['tmp/[ab]'].size == 2" }
    FileUtils.mkdir_p(File.join(@root, "tmp"))

    assert nightly(stage("a", wait_for["a"]), stage("b", wait_for["b"]).with(beside: true)).run
  end

  def test_changed_files_are_marked_and_the_result_file_is_none
    nightly(stage("a", "puts 1")).run
    nightly(stage("a", "puts 1")).run

    refute_includes results["commit"], "changes"
    write "test/net/a_test.rb", "# changed"
    nightly(stage("a", "puts 1")).run

    assert_includes results["commit"], "+changes"
  end

  def test_test_has_changed_until_its_sanitizer_has_passed_with_it_and_its_c
    assert_equal [TEST], changed
    refute nightly(sanitized("exit 1")).run
    assert_equal [TEST], changed
    assert nightly(sanitized("puts 1")).run
    assert_empty changed
    write "ext/heddle/net/a.c", "int other;"

    assert_equal [TEST], changed
    assert nightly(sanitized("puts 1")).run
    write TEST, "another_test"

    assert_equal [TEST], changed
  end

  def test_comments_and_blank_lines_of_c_change_nothing
    write "ext/heddle/net/a.c", %(/* before */\nchar *url = "http://a/* */", quote = '"'; // after\n)
    assert nightly(sanitized("puts 1")).run
    write "ext/heddle/net/a.c", %(\n/* two\nlines */ char *url = "http://a/* */", quote = '"'; /* " */\n\n)
    assert_empty changed
    write "ext/heddle/net/a.c", %(char *url = "http://b/* */", quote = '"';\n)

    assert_equal [TEST], changed
  end

  def test_stages_with_the_same_sanitizer_keep_what_the_others_have_run
    write "test/net/b_test.rb", ""
    other = stage("other", "puts 1").with(sanitizer: "address", tests: ["test/net/b_test.rb"])
    nightly(sanitized("puts 1"), other).run

    assert_equal [TEST, "test/net/b_test.rb"], results["sanitized"]["address"].keys
    File.unlink(File.join(@root, "test/net/b_test.rb"))
    nightly(sanitized("puts 1")).run

    assert_equal [TEST], results["sanitized"]["address"].keys, "a deleted test leaves"
  end

  def test_c_test_is_made_of_its_sources_and_their_headers
    found = SanitizedContent.new(ROOT).files("test/c/timer_heap_test.c")

    assert_includes found, "ext/heddle/scheduler/timer_heap.c"
    assert_includes found, "ext/heddle/scheduler/timer_heap.h"
    assert_includes found, "test/c/check.h"
    refute_includes found, "ext/heddle/net/sockets.c"
  end

  def test_kqueue_tests_are_made_of_the_shim_too
    kqueue, address = %w[kqueue address].map do |sanitizer|
      SanitizedContent.new(ROOT).digests(sanitizer, ["test/c/selector_wake_test.c"]).values
    end

    refute_equal kqueue, address
  end

  def test_every_folder_of_the_extension_concerns_tests_and_every_sanitized_test_is_concerned
    folders = Dir.glob("*/", base: File.join(ROOT, "ext/heddle")).map { |name| name.chomp("/") }
    sanitized = TestPlan.new(root: ROOT, rubies: []).sanitized(TestRunner.files([File.join(ROOT, "test")]))
    content = SanitizedContent.new(ROOT)

    assert_equal folders.sort, SanitizedContent::CONCERNED.keys
    assert_empty sanitized.reject { |test| content.files(test).size > 1 }
    unused = SanitizedContent::CONCERNED.values.flatten.reject { |name| sanitized.any? { |test| test.start_with?(name) } }

    assert_empty unused
  end

  TEST = "test/net/a_test.rb"
  private_constant :TEST

  private

  def changed = SanitizedContent.new(@root).changed("address", [TEST])

  def sanitized(program) = stage("ruby", program).with(sanitizer: "address", tests: [TEST])

  def stage(name, program) = Nightly::Stage.new(name:, command: [RbConfig.ruby, "--disable=gems", "-e", program])

  def nightly(*stages) = Nightly.new(stages, root: @root, out: @out)

  def results = JSON.parse(File.read(File.join(@root, ".ci/nightly.json")))

  def write(path, content) = File.write(File.join(@root, path), content)

  def git(*arguments)
    system("git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments, chdir: @root, exception: true)
  end

  def commit
    git "add", "-A"
    git "commit", "-qm", "x"
  end
end

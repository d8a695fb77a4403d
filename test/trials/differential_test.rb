# frozen_string_literal: true

# test: long
# test: nightly

require "test_helper"
require "stringio"
require "tmpdir"
require_relative "differential/comparison"
require_relative "differential/page"
require_relative "differential/sources"
require_relative "differential/trial"
require_relative "differential/way_run"

# The runner of the differential trials reports the result of each example, and our own programs print the same in all
# four ways. Gems' suites take too long for here: `test/trials/run` runs them.
class TrialDifferentialTest < Minitest::Test
  MINITEST = <<~RUBY
    require "minitest/autorun"
    class PlantedTest < Minitest::Test
      def test_passes = assert(true)
      def test_fails = assert(false, "planted")
      def test_skips = skip("planted")
      def test_raises = raise("planted")
      def test_differs = assert_nil(Fiber.scheduler)
      def test_switches = assert_operator(Fiber.scheduler ? Fiber.scheduler.statistics[:preemptions] : 1, :>=, 0)
    end
  RUBY
  RSPEC = <<~RUBY
    RSpec.describe "planted" do
      it("passes") { expect(1).to eq(1) }
      it("fails") { expect(1).to eq(2) }
      it("raises") { raise "planted" }
      it("is pending") { skip "planted" }
      it("differs") { expect(Fiber.scheduler).to be_nil }
    end
  RUBY
  BROKEN = <<~RUBY
    Trials::Program.example("first") { |out| out.puts 1 }
    Trials::Program.example("crashes") { Process.kill(:KILL, Process.pid) }
    Trials::Program.example("hangs") { sleep }
    Trials::Program.example("last") { |out| out.puts 2 }
  RUBY

  def test_examples_of_minitest_run_where_they_belong
    runs = planted("minitest", MINITEST, ways: %w[plain loop])

    assert_equal({ "passes" => "pass", "fails" => "fail", "skips" => "skip", "raises" => "error", "differs" => "pass",
                   "switches" => "pass" }, runs["plain"].results.transform_keys { |name| name[/test_(.+)/, 1] })
    assert_equal [["loop", "PlantedTest#test_differs", "pass", "fail"]], differences(runs)
  end

  def test_examples_of_rspec_run_where_they_belong
    runs = planted("rspec", RSPEC, ways: %w[plain chaos])

    assert_equal %w[pass fail error skip pass], runs["plain"].results.values
    assert_equal [["chaos", "./planted.rb:6 planted differs", "pass", "fail"]], differences(runs)
  end

  def test_a_suite_continues_after_an_example_that_crashes_or_hangs
    results = planted("program", BROKEN, ways: %w[plain])["plain"].results

    assert_equal({ "first" => "printed: 1\n", "crashes" => "crash", "hangs" => "hang", "last" => "printed: 2\n" },
                 results)
  end

  def test_examples_that_the_suite_names_are_not_run
    runs = planted("program", BROKEN, ways: %w[plain], skip: %w[crashes hangs])

    assert_equal %w[first last], runs["plain"].results.keys
  end

  def test_suite_whose_sources_are_missing_is_neither_the_same_nor_different
    suite = Trials::Suite.new("planted", "source" => "checkout v1", "gem" => "planted 1.0", "framework" => "rspec")
    out = StringIO.new

    assert_nil Trials::Trial.new(suite, ways: %w[plain loop], out:).run
    assert_equal "planted: needs a checkout of v1 in HEDDLE_TRIAL_SOURCES/planted\n", out.string
  end

  def test_a_trial_that_is_ended_by_a_signal_leaves_no_process_behind
    %i[TERM INT].each do |signal|
      Dir.mktmpdir do |folder|
        trial, child = endless_trial(folder)
        Process.kill(signal, trial)
        Process.wait(trial)

        assert_raises(Errno::ESRCH, "#{signal} left a process") { Process.kill(0, child) }
      end
    end
  end

  def test_an_exclusion_excuses_its_example_in_its_way_only
    suite = Trials::Suite.new("planted", {})
    suite.define_singleton_method(:exclusions) { [{ "example" => "*bee", "way" => "loop", "reason" => "why" }] }
    run = Struct.new(:results, :messages)
    runs = { "plain" => run.new({ "a" => "pass", "./spec/bee" => "pass" }, {}) }
    %w[loop chaos].each { |way| runs[way] = run.new({ "a" => "pass", "./spec/bee" => "fail" }, {}) }
    comparison = Trials::Comparison.new(suite, runs)

    assert_equal({ "why" => ["./spec/bee"] }, comparison.expected)
    assert_equal([%w[chaos ./spec/bee]], comparison.unexpected.map { |difference| difference.first(2) })
  end

  def test_where_only_passing_examples_are_compared_others_make_no_difference
    suite = Trials::Suite.new("planted", { "compare" => "passing" })
    run = Struct.new(:results, :messages)
    runs = { "plain" => run.new({ "a" => "pass", "b" => "hang", "c" => "pass", "d" => "pass" }, {}),
             "loop" => run.new({ "a" => "pass", "b" => "pass", "c" => "fail" }, {}) }
    comparison = Trials::Comparison.new(suite, runs)

    assert_equal([%w[loop c pass fail], ["loop", "d", "pass", "not run"]],
                 comparison.differences.map { |difference| difference.first(4) })
    assert_equal [3, 1], [comparison.passing("plain"), comparison.passing("loop")]
  end

  def test_every_run_program_is_on_the_page
    Dir.mktmpdir do |folder|
      page = File.join(folder, "gems.md")
      File.write(page, "<!-- table: x -->\n<!-- end of table -->\n<!-- reasons: x -->\n<!-- end of reasons -->\n")
      suite = Trials::Suite.all.find { |one| one.name == "programs" }
      run = Struct.new(:results, :messages).new({ "a" => "pass" }, {})
      comparison = Trials::Comparison.new(suite, { "plain" => run, "loop" => run })
      2.times { Trials::Page.new(page).update(comparison, ruby: RbConfig.ruby, seed: 1) }

      assert_equal ["| programs | #{RUBY_VERSION} | 1: 1 pass | loop | 0 | 0 |"],
                   File.readlines(page, chomp: true).grep(/^\| prog/)
    end
  end

  def test_page_has_the_reasons_that_a_run_would_write
    sections = File.read(Trials::Page::FILE)[/<!-- reasons: .*? -->\n(.*?)<!-- end of reasons -->/m, 1].split(/^### /)
    sections.drop(1).each do |section|
      name, *lines = section.lines(chomp: true).reject(&:empty?)
      reasons = Trials::Suite.named([name]).first.exclusions.map { |entry| entry.fetch("reason") }

      assert_empty lines.reject { |line| line.end_with?(*reasons.map { |reason| ": #{reason}" }) }, name
    end
  end

  def test_our_programs_print_the_same_in_all_ways
    suite = Trials::Suite.all.find { |one| one.name == "programs" }
    %w[ffi lmdb nokogiri].each { |gem| skip "needs the gem #{gem}" if Gem::Specification.find_all_by_name(gem).empty? }
    comparison = Trials::Comparison.new(suite, runs_of(suite, Trials::Sources.new(suite).place))

    assert_operator comparison.examples, :>=, 14
    assert_empty comparison.unexpected, comparison.unexpected.map { |difference| difference.join(" | ") }.join("\n")
  end

  private

  def planted(framework, program, ways:, **settings)
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "planted.rb"), program)
      settings = { framework:, files: ["planted.rb"], patience: 20, **settings }.transform_keys(&:to_s)
      suite = Trials::Suite.new("planted", settings)
      prelude = "require #{File.join(Trials::Suite::ROOT, "bin/support/gem_paths.rb").dump}"
      runs_of(suite, { folder:, environment: {}, prelude:, load_path: [] }, ways:)
    end
  end

  # => [the process that runs a trial, the process of its example, which never ends]
  def endless_trial(folder)
    fifo = File.join(folder, "fifo").tap { |path| File.mkfifo(path) }
    File.write(File.join(folder, "planted.rb"), <<~RUBY)
      Trials::Program.example("never ends") { File.write("fifo", Process.pid.to_s) && sleep }
    RUBY
    trial = fork do
      %i[TERM INT].each { |signal| trap(signal, "DEFAULT") }
      suite = Trials::Suite.new("planted", "framework" => "program", "files" => ["planted.rb"])
      place = { folder:, environment: {}, prelude: "", load_path: [] }
      Trials::WayRun.new(suite, "plain", place:, logs: folder).run
    rescue SignalException
      exit!(0)
    end
    [trial, Integer(File.read(fifo))]
  end

  def runs_of(suite, place, ways: Trials::WayRun::WAYS)
    Dir.mktmpdir do |logs|
      ways.to_h { |way| [way, Trials::WayRun.new(suite, way, place:, logs:).tap(&:run)] }
    end
  end

  def differences(runs)
    Trials::Comparison.new(Trials::Suite.new("planted", {}), runs).differences.map { |difference| difference.first(4) }
  end
end

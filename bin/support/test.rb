# frozen_string_literal: true

# bin/test's command line. The first argument names the file in which bin/setup lists the Rubies that are ready, which
# is deleted; with --help there is none.

require_relative "test_runner"

rubies_file = ARGV.shift unless ARGV.first == "--help"
arguments = []
selectors = nil
jobs = TestRunner::JOBS
fill = IdleProcessors.new
durations = 0
plan = "whole"
OptionParser.new do |options|
  options.banner = "Usage: bin/test [options] [test files or folders]"
  options.on("-n", "--name PATTERN", "only tests whose name matches") { |name| arguments.push("-n", name) }
  options.on("--seed N", Integer, "the order of the tests") { |seed| arguments.push("--seed", seed.to_s) }
  options.on("-s", "--selector NAME", "with this selector only (several with commas)") { |s| selectors = s.split(",") }
  options.on("-j", "--jobs N", Integer, "test files at a time (#{jobs}, and more while a processor idles)") do |n|
    jobs = n
    fill = nil
  end
  options.on("--durations N", Integer, "name the N files that cost most at the end") { |n| durations = n }
  options.on("--plan NAME", TestPlan::NAMES, "#{TestPlan::NAMES.join(", ")}: see CONTRIBUTING.md") { |name| plan = name }
  options.separator ""
  options.separator "HEDDLE_RUBY=ruby3.4 bin/test: on that Ruby only."
end.parse!

rubies = TestInterpreter.list(rubies_file)
File.delete(rubies_file)

in_c, files = TestRunner.files(ARGV.empty? ? ["test"] : ARGV).partition { |file| file.end_with?(".c") }

# The C tests know no Ruby: they run once, under sanitizers.
commands = {}
if arguments.empty? && selectors.nil?
  # One at a time: the other jobs run Ruby tests.
  runner = [rubies.first.path, "test/c/run", "--jobs=1"]
  in_c.each { |file| commands[file] = [*runner, file] }
  named = ARGV.any? { |argument| argument.chomp("/").end_with?("test/c") }
  # .ci/run has run those that have changed.
  if named || (ARGV.empty? && plan != "ci")
    runner << "--changed" unless named
    title = named ? "C tests" : "C tests that .ci/nightly has not run (bin/test test/c runs all)"
    commands[title] = runner
    commands["#{title}, kqueue"] = [*runner, "--kqueue"] if File.exist?("/usr/include/kqueue/sys/event.h")
  end
end

plan = TestPlan.new(root: TestRunner::ROOT, rubies:, name: plan, selectors:)
files.reject! { |file| plan.marked?(file, "nightly") } if ARGV.empty? && !plan.nightly?
runner = TestRunner.new(plan:, jobs:, fill:, arguments:, durations:, fork: true)
begin
  runner.run(files, commands:)
rescue Interrupt
  runner.report.close
  exit 130
end
exit runner.report.close

# frozen_string_literal: true

# bin/sanitize's command line. The first argument names the file in which bin/setup lists the Ruby that is ready; with
# --help there is none.
# TestPlan#sanitized says which tests are chosen.

require "fileutils"
require_relative "sanitized_content"
require_relative "test_runner"

rubies_file = ARGV.shift unless ARGV.first == "--help"
arguments = []
c_tests = true
changed = false
OptionParser.new do |options|
  options.banner = "Usage: bin/sanitize [options] [test files or folders]"
  options.on("-n", "--name PATTERN", "only tests whose name matches") { |name| arguments.push("-n", name) }
  options.on("--no-c", "without the C tests, which bin/test runs under the sanitizers as well") { c_tests = false }
  options.on("--changed", "only tests that have changed, or whose C has, since .ci/nightly ran them") { changed = true }
end.parse!

ruby = TestInterpreter.list(rubies_file).first
plan = TestPlan.new(root: TestRunner::ROOT, rubies: [ruby])
files = TestRunner.files(ARGV.empty? ? ["test"] : ARGV)
ARGV.empty? ? files = plan.sanitized(files) : files.reject! { |file| plan.marked?(file, "not sanitized") }
if changed
  all = files.size
  files = SanitizedContent.new(TestRunner::ROOT).changed("address", files)
  puts "#{files.size} of #{all} test files have changed, or their C has, since .ci/nightly ran them under sanitizers"
  exit if files.empty?
end
system(ruby.path, "bin/compile", "--sanitize=address,undefined", chdir: TestRunner::ROOT) || exit(1)
compiler = ENV["CC"] || RbConfig::CONFIG["CC"].split.first
library = IO.popen([*compiler.split, "-print-file-name=libasan.so"], &:read).strip
abort "bin/sanitize: #{compiler} has no libasan.so; use gcc and its sanitizers" unless File.exist?(library)

# Into files: on a fiber's stack ASan warns that it can't unmark the stack (which asan-stack=0 leaves unmarked), and a
# test that reads a program's standard error would find that there.
logs = File.join(TestRunner::ROOT, "tmp/sanitize")
FileUtils.rm_rf(logs)
FileUtils.mkdir_p(logs)

sanitized = {
  "HEDDLE_NATIVE" => "sanitize", "HEDDLE_SANITIZED" => "1", "LD_PRELOAD" => File.realpath(library),
  # Ruby itself keeps what it allocated until the end, and its fibers' stacks are no secret to its collector.
  "ASAN_OPTIONS" => "detect_leaks=0:detect_stack_use_after_return=0:use_sigaltstack=0:print_legend=0:" \
                    "log_path=#{logs}/asan",
  "UBSAN_OPTIONS" => "print_stacktrace=1:log_path=#{logs}/ubsan"
}
ruby = ruby.with(environment: ruby.environment.merge(sanitized))
plan = TestPlan.new(root: TestRunner::ROOT, rubies: [ruby])
runner = TestRunner.new(plan:, fill: IdleProcessors.new, arguments:, limit: 600)
c_tests &&= !changed && ARGV.empty? && arguments.empty?
commands = c_tests ? { "C tests" => [ruby.path, "test/c/run", "--jobs=1"] } : {}

runner.run(files, commands:)
Dir.glob("#{logs}/*").each do |log|
  output = File.read(log)
  found = output[/(?:ERROR|runtime error): .*/] or next
  runner.report.add(TestResult.new(title: "sanitizers", passed: 0, failed: 1, skipped: 0, output:, seconds: 0,
                                   failures: ["sanitizers: #{found}"], skips: []))
end
exit runner.report.close(ci: false)

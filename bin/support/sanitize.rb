# frozen_string_literal: true

# bin/sanitize's command line. The first argument names the file in which bin/setup lists the Ruby that is ready.
# Chosen are the tests in test/selector and test/scheduler, and those that say `# test: sanitize`; not those that say
# `# test: not sanitized` (a hundred thousand fibers, say, which ASan has no memory for).

require "fileutils"
require_relative "test_runner"

rubies_file = ARGV.shift
arguments = []
c_tests = true
retries = 0
OptionParser.new do |options|
  options.banner = "Usage: bin/sanitize [options] [test files or folders]"
  options.on("-n", "--name PATTERN", "only tests whose name matches") { |name| arguments.push("-n", name) }
  options.on("--no-c", "without the C tests, which bin/test runs under the sanitizers as well") { c_tests = false }
  options.on("--retries N", Integer, "as of bin/test; what a sanitizer has found stays a failure") { |n| retries = n }
end.parse!

ruby = TestInterpreter.list(rubies_file).first
compiler = ENV["CC"] || RbConfig::CONFIG["CC"].split.first
library = IO.popen([compiler, "-print-file-name=libasan.so"], &:read).strip
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
runner = TestRunner.new(rubies: [ruby], arguments:, limit: 600, retries:)
files = TestRunner.files(ARGV.empty? ? ["test"] : ARGV)
chosen = ->(file) { file.start_with?(*TestRunner::EACH_SELECTOR) || runner.marked?(file, "sanitize") }
files.select!(&chosen) if ARGV.empty?
files.reject! { |file| runner.marked?(file, "not sanitized") }
commands = c_tests && ARGV.empty? && arguments.empty? ? { "C tests" => [ruby.path, "test/c/run", "--jobs=1"] } : {}

runner.run(files, commands:)
Dir.glob("#{logs}/*").each do |log|
  output = File.read(log)
  found = output[/(?:ERROR|runtime error): .*/] or next
  runner.report.add(TestResult.new(title: "sanitizers", passed: 0, failed: 1, skipped: 0, output:, seconds: 0,
                                   failures: ["sanitizers: #{found}"], skips: []))
end
exit runner.report.close(ci: false)

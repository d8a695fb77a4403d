# frozen_string_literal: true

# bin/test's command line. The first argument names the file in which bin/setup lists the Rubies that are ready.

require_relative "test_runner"

rubies_file = ARGV.shift
arguments = []
selectors = nil
jobs = Etc.nprocessors
OptionParser.new do |options|
  options.banner = "Usage: bin/test [options] [test files or folders]"
  options.on("-n", "--name PATTERN", "only tests whose name matches") { |name| arguments.push("-n", name) }
  options.on("--seed N", Integer, "the order of the tests") { |seed| arguments.push("--seed", seed.to_s) }
  options.on("-s", "--selector NAME", "with this selector only (several with commas)") { |s| selectors = s.split(",") }
  options.on("-j", "--jobs N", Integer, "test files at a time (#{jobs})") { |n| jobs = n }
  options.separator ""
  options.separator "HEDDLE_RUBY=ruby3.4 bin/test: on that Ruby only."
end.parse!

PROBE = <<~RUBY
  require "bundler"
  puts Bundler::VERSION
  begin
    require "heddle/scheduler"
    best = Heddle::Selector.best.to_s
    puts [best, *(Heddle::Selector.available.map(&:to_s) - [best])].join(" ")
  rescue LoadError, NameError => e
    warn "bin/test: the selectors are not known: \#{e.message}"
  end
RUBY

rubies = File.readlines(rubies_file, chomp: true).map do |line|
  _, _, version, abi, path = line.split("\t")
  bundler, selectors_here = IO.popen([path, "-Ilib", "-e", PROBE], chdir: TestRunner::ROOT, &:read).lines(chomp: true)
  gems = File.join(TestRunner::ROOT, "vendor/bundle/ruby", abi)
  # BUNDLER_VERSION: an example's lock file must not make Bundler fetch the version that wrote it.
  environment = { "GEM_HOME" => gems, "GEM_PATH" => gems, "BUNDLER_VERSION" => bundler }
  TestRunner::Interpreter.new(version:, abi:, path:, selectors: selectors_here.to_s.split, environment:)
end

files = (ARGV.empty? ? ["test"] : ARGV).flat_map do |argument|
  path = File.expand_path(argument).delete_prefix("#{TestRunner::ROOT}/")
  next path if path.end_with?(".rb", ".c") && File.file?(File.join(TestRunner::ROOT, path))

  found = Dir.glob("#{path}/**/*_test.rb", base: TestRunner::ROOT).sort
  abort "bin/test: #{argument} is neither a test file nor a folder with some" if found.empty? && path != "test/c"
  found
end.uniq
in_c, files = files.partition { |file| file.end_with?(".c") }

# The C tests know no Ruby: they run once, under sanitizers.
commands = {}
if arguments.empty? && selectors.nil?
  runner = [rubies.first.path, "test/c/run"]
  in_c.each { |file| commands[file] = [*runner, file] }
  if ARGV.empty? || ARGV.any? { |argument| argument.chomp("/").end_with?("test/c") }
    commands["C tests"] = runner
    commands["C tests, kqueue"] = [*runner, "--kqueue"] if File.exist?("/usr/include/kqueue/sys/event.h")
  end
end

runner = TestRunner.new(rubies:, jobs:, arguments:, selectors:)
begin
  runner.run(files, commands:)
rescue Interrupt
  runner.report.close
  exit 130
end
exit runner.report.close

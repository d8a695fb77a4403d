# frozen_string_literal: true

# .ci/nightly's command line. The first argument names the file in which bin/setup lists the Rubies that are ready; with
# --help there is none.

require_relative "concerned_tests"
require_relative "nightly"
require_relative "test_runner"

rubies_file = ARGV.shift unless ARGV.first == "--help"
resume = list = false
hours = 1.0
repeat = Integer(ENV.fetch("HEDDLE_TEST_REPEAT", 10))
OptionParser.new do |options|
  options.banner = "Usage: .ci/nightly [options] [stages]"
  options.separator "A stage is named by the beginning of its name; without a name all stages run."
  options.separator "The results are in #{SanitizedContent::RESULTS}."
  options.on("--resume", "leave out what has passed with this code") { resume = true }
  options.on("--list", "print the names of the stages") { list = true }
  options.on("--fuzz-hours N", Float, "for how long the parsers are fuzzed together (#{hours})") { |n| hours = n }
end.parse!

root = TestRunner::ROOT
rubies = TestInterpreter.list(rubies_file)
first = rubies.first
plan = TestPlan.new(root:, rubies:, name: "nightly")
files = TestRunner.files([File.join(root, "test")])
product = %w[ext/ lib/ exe/ heddle.gemspec Gemfile.lock]
concerned = ConcernedTests.new(root, files)
tests = rubies.flat_map do |ruby|
  ["default", *ruby.selectors.drop(1)].map do |selector|
    with_it = selector == "default" ? files : files.reject { |file| plan.once?(file) }
    name = "tests #{ruby.version[/\A\d+\.\d+/]} #{selector == "default" ? ruby.selectors.first : selector}"
    Nightly::Stage.new(name:, command: %W[bin/test --plan nightly --durations 25 --selector #{selector}],
                       environment: { "HEDDLE_RUBY" => ruby.path, "HEDDLE_TEST_REPEAT" => repeat.to_s },
                       covers: [*product, "test/", "examples/", "benchmark/"],
                       concerned: ->(changed) { concerned.call(changed)&.intersection(with_it) })
  end
end

# A stage that runs while tests wait.
def beside(name, *command, covers:) = Nightly::Stage.new(name:, command:, covers:, beside: true)

c_tests = Dir.glob("test/c/*_test.c", base: root).sort
content = SanitizedContent.new(root)
kqueue_tests = c_tests.select { |path| content.files(path).include?("ext/heddle/selector/kqueue.c") }
ruby = first.path
stages = [
  Nightly::Stage.new(name: "c address", command: [ruby, "test/c/run"], sanitizer: "address", tests: c_tests),
  Nightly::Stage.new(name: "c kqueue", command: [ruby, "test/c/run", "--kqueue"], sanitizer: "kqueue",
                     tests: kqueue_tests),
  Nightly::Stage.new(name: "c thread", command: [ruby, "test/c/run", "--tsan"], sanitizer: "thread", tests: c_tests),
  Nightly::Stage.new(name: "ruby address", command: %w[bin/sanitize --no-c], sanitizer: "address",
                     tests: plan.sanitized(files)),
  *tests,
  beside("switch", ruby, "test/switch/run",
         covers: [*product, "test/switch/", "test/support/free_port.rb", "test/cli/demo/browser.rb"]),
  beside("trials", ruby, "test/trials/run", covers: [*product, "test/trials/", "test/support/"]),
  beside("hold", ruby, "-r", "./bin/support/gem_paths.rb", "test/hold/command.rb",
         covers: [*product, "test/hold/", "test/support/", "test/rails/bundles/", "test/rails/support/"]),
  beside("gem", ruby, "bin/support/gem_check.rb",
         covers: [*product, "bin/support/gem_check.rb", "bin/support/package.rb", "bin/support/amalgamation.rb",
                  "examples/plain/"]),
  beside("nginx", "test/trials/nginx/run", covers: [*product, "test/"]),
  # An hour together.
  beside("fuzz", "nice", ruby, "test/fuzz/run", "--hours", (hours * 0.75).to_s,
         covers: ["ext/", "test/fuzz/", "test/c/objects.rb"]),
  beside("fuzz dns", "nice", ruby, "-Ilib", "test/fuzz/dns", (hours * 1_000_000).to_i.to_s,
         covers: [*product, "test/fuzz/dns", "test/net/dns/support/"]),
  beside("fuzz client", "nice", ruby, "-Ilib", "test/fuzz/client", (hours * 20_000).to_i.to_s,
         covers: [*product, "test/fuzz/client", "test/http/client/support/"])
]
# Those with rows and options of their own: the others are programs for one question.
Dir.glob("benchmark/*.rb", base: root).sort.each do |path|
  next unless File.read(File.join(root, path)).include?("Bench::Command")

  name = File.basename(path, ".rb")
  stages << Nightly::Stage.new(name: "benchmark #{name}", command: %W[bin/bench #{name} --quick],
                               covers: [*product, "benchmark/", "test/support/free_port.rb"])
end

if list
  puts stages.map(&:name)
  exit
end
begin
  exit Nightly.new(stages, root:).run(ARGV, resume:)
rescue ArgumentError => e
  abort ".ci/nightly: #{e.message}"
end

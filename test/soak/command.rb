# frozen_string_literal: true

# bin/soak's command line.

require "fileutils"
require "json"
require "open3"
require "optparse"

root = File.expand_path("../..", __dir__)
$LOAD_PATH.unshift(File.join(root, "test"))
require_relative "run"
require_relative "report"

# Where the report and the server's log are written.
command = "bin/soak #{ARGV.join(" ")}".strip
hours = 2.0
pace = 1.0
folder = File.join(root, "tmp/soak")
environment = {}
allocator = "malloc of the system"
OptionParser.new do |options|
  options.on("--hours N", Float) { |number| hours = number }
  options.on("--pace N", Float) { |number| pace = number }
  options.on("--report FOLDER") { |path| folder = File.expand_path(path) }
  options.on("--yjit") do
    defined?(RubyVM::YJIT) or abort "bin/soak: #{RUBY_VERSION} was built without YJIT; HEDDLE_RUBY names another Ruby"
    environment["RUBY_YJIT_ENABLE"] = "1"
  end
  options.on("--jemalloc") do
    library = Dir["/usr/lib/*/libjemalloc.so.2"].first or abort "bin/soak: as root: apt-get install libjemalloc2"
    environment["LD_PRELOAD"] = library
    allocator = File.basename(library)
  end
end.parse!

abort "bin/soak: PostgreSQL is missing; as root: apt-get install postgresql" unless PrivatePostgresql.programs
commit, = Open3.capture2("git", "-C", root, "rev-parse", "--short=8", "HEAD")
result = SoakTest::Run.new(hours * 3_600, environment:, pace:).run
about = { "command" => command, "commit" => commit.strip, "date" => Time.now.utc.strftime("%Y-%m-%d"),
          "Ruby" => "#{RUBY_VERSION}#{" with YJIT" if environment.key?("RUBY_YJIT_ENABLE")}", "allocator" => allocator }
report = SoakTest::Report.of(result, about)
FileUtils.mkdir_p(folder)
File.write(File.join(folder, "report.json"), "#{JSON.pretty_generate(report.to_h)}\n")
File.write(File.join(folder, "report.txt"), "#{report}\n")
File.write(File.join(folder, "samples.json"), JSON.generate(result.samples.map(&:to_h)))
File.write(File.join(folder, "server.log"), result.output)
puts report
exit report.problems.empty?

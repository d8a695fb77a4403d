# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require "tmpdir"
$LOAD_PATH.unshift(File.expand_path("../..", __dir__)) # of the tests' support
require_relative "../../../bin/support/gem_paths"
require_relative "../../support/private_postgresql"
require_relative "rows"

module Trials
  # Runs the programs of the gem matrix, and writes their results into docs/gems.md.
  class Matrix
    ROOT = File.expand_path("../../..", __dir__)
    PAGE = File.join(ROOT, "docs/gems.md")
    MARKS = ["<!-- matrix: written by `test/trials/matrix/run --write` -->\n", "<!-- end of matrix -->"].freeze
    HEAD = "| gem | Rubies | result | configure |\n| - | - | - | - |\n"
    RUBIES = %w[ruby3.3 ruby3.4].freeze
    # Seconds for one program.
    PATIENCE = 120
    ROWS = MatrixRows::ALL
    # Other gems that have to be there first.
    NEEDS = { "activestorage" => ["railties"], "karafka" => ["karafka-rdkafka"], "waterdrop" => ["karafka-rdkafka"],
              "opentelemetry-instrumentation-pg" => ["opentelemetry-sdk"],
              "opentelemetry-instrumentation-net_http" => ["opentelemetry-sdk"] }.freeze
    # Gems with binaries for GNU's C library and for musl. RubyGems before 3.3.22 takes musl's on either, and grpc's
    # binary only by force.
    BINARIES = %w[grpc karafka-rdkafka rdkafka sqlite3].freeze
    # Gems with binaries for Linux, whose sources take minutes to build.
    FORCED = %w[commonmarker google-protobuf mini_racer wasmtime].freeze
    GLIBC_ONLY = "-r#{ROOT}/test/trials/support/glibc_only.rb".freeze

    # @return [Array<MatrixRows::Row>] those with a program
    def self.tried = ROWS.reject(&:tested_by)

    # @param names [Array<String>] of gems; empty: all
    def initialize(names = [])
      @rows = Matrix.tried.select { |row| names.empty? || names.include?(row.name) }
      @results = {}
    end

    # @return [Array<String>] the gems that failed
    def run
      start_servers
      @rows.each_slice(4) do |rows|
        rows.map do |row|
          Thread.new do
            @results[row.name] = RUBIES.to_h do |ruby|
              [ruby, try(row, ruby)]
            end
          end
        end.each(&:join)
      end
      @rows.map(&:name).reject { |name| @results[name].values.all? { |result| result[:ok] } }
    ensure
      stop_servers
    end

    # Puts the rows into the page. Those that were not run keep their result.
    # @return [void]
    def write
      head, rest = File.read(PAGE).split(MARKS.first, 2)
      before, after = rest.split(MARKS.last, 2)
      kept = before.lines.drop(2).to_h { |line| [line[/\A\| ([^| ]+)/, 1], line] }
      table = ROWS.map { |row| @results.key?(row.name) ? line_of(row) : written_line(row) || kept.fetch(row.name) }
      File.write(PAGE, [head, MARKS.first, HEAD, *table, MARKS.last, after].join)
    end

    private

    def line_of(row)
      found = @results.fetch(row.name)
      versions = found.values.map { |result| result[:version] }.uniq.join(", ")
      rubies = found.map { |ruby, result| "#{ruby.delete_prefix("ruby")}#{" failed" unless result[:ok]}" }.join(", ")
      said = found.values.flat_map { |result| result[:said] }.uniq.join(". ")
      "| #{row.name} #{versions} | #{rubies} | #{said} | #{row.configure} |\n"
    end

    def written_line(row)
      "| #{row.name} | 3.3, 3.4 | see [its test](../#{row.place}) | #{row.configure} |\n" if row.tested_by
    end

    # @return [Hash] `ok`, `version`, and what the program `said`
    def try(row, ruby)
      abi = IO.popen([ruby, "-rrbconfig", "-e", "print RbConfig::CONFIG['ruby_version']"], &:read)
      home = File.join(ROOT, "tmp/trials/matrix", abi)
      environment = @environment.merge("GEM_HOME" => home, "RUBYOPT" => nil,
                                       "GEM_PATH" => "#{home}:#{ROOT}/vendor/bundle/ruby/#{abi}")
      version = install(row, ruby, environment)
      output, ok = with_stand_in { |address| output_of(environment.merge(address), ruby, row) }
      puts "#{ruby} #{row.name} #{version}: #{ok ? "passed" : "FAILED\n#{output}"}"
      said = output.scan(/^(?:proved|noted|not so): (.+)/).flatten
      { ok:, version:, said: ok || !said.empty? ? said : ["the program ends with an error"] }
    end

    def install(row, ruby, environment)
      find = ["-e", "print Gem::Specification.find_all_by_name(ARGV[0]).map(&:version).max", row.name]
      version = IO.popen([environment, ruby, *find], &:read)
      return version unless version.empty?

      [*NEEDS[row.name], row.name].each do |name|
        Dir.mktmpdir do |folder|
          force = FORCED.include?(name) ? ["--force"] : []
          name, *force = fetch(name, ruby, environment, folder) if BINARIES.include?(name)
          system(environment, ruby, GLIBC_ONLY, "-S", "gem", "install", "--no-document", "--conservative", *force, name,
                 out: File::NULL)
        end
      end
      IO.popen([environment, ruby, *find], &:read)
    end

    # @return [Array<String>] the path of the gem with the binary for GNU's C library, and how to install it
    def fetch(name, ruby, environment, folder)
      system(environment, ruby, "-S", "gem", "fetch", name, "--platform", "#{RbConfig::CONFIG["host_cpu"]}-linux-gnu",
             chdir: folder, out: File::NULL)
      found = Dir[File.join(folder, "*-linux-gnu.gem")].first
      found ? [found, "--force"] : [name]
    end

    def output_of(environment, ruby, row)
      reader, writer = IO.pipe
      command = [ruby, "-I#{ROOT}/lib", "-r#{__dir__}/support.rb", File.join(ROOT, row.place)]
      pid = spawn(environment, *command, in: File::NULL, out: writer, err: writer)
      writer.close
      status = Process.detach(pid)
      output = Thread.new { reader.read }
      Process.kill(:KILL, pid) unless status.join(PATIENCE)
      [output.value, status.value.success? || false]
    end

    def start_servers
      @environment = {}
      @servers = []
      daemon("redis", "redis-server", "--port", "0", "--save", "", "--unixsocket")
      daemon("memcached", "memcached", "-u", "root", "-s")
      require "pg"
      @servers << (postgresql = PrivatePostgresql.new)
      @environment["MATRIX_POSTGRESQL"] = postgresql.url
    end

    # A server with a unix socket, whose path is the last argument.
    def daemon(name, *command)
      @servers << (server = PrivateServer.new("socket") { |folder| [*command, File.join(folder, "socket")] })
      @environment["MATRIX_#{name.upcase}"] = File.join(server.folder, "socket")
    end

    def stop_servers = @servers&.each(&:stop)

    # Each program has a stand-in of its own: it counts.
    def with_stand_in
      stand_in = IO.popen([RbConfig.ruby, File.join(__dir__, "stand_in.rb")])
      yield({ "MATRIX_HTTP" => "http://127.0.0.1:#{stand_in.gets.chomp}" })
    ensure
      Process.kill(:TERM, stand_in.pid)
      stand_in.close
    end
  end
end

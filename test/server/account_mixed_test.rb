# frozen_string_literal: true

# test: nightly
# test: long

require "test_helper"
require "json"
require "open3"
require "pg"
require "tmpdir"
require "support/certificates"
require "support/private_postgresql"
require "pubsub/backend/support/private_redis"
require "support/served_process"

# The time accounts of a thousand requests that spend their time on everything that applications do, beside the clock.
class AccountMixedTest < Minitest::Test
  FILE = File.expand_path("account_mixed.ru", __dir__)
  GEM_PATHS = File.expand_path("../../bin/support/gem_paths", __dir__)
  REQUESTS = 1_000
  # Of a request: what its account may not explain, in seconds and as a share, and in how many of a thousand requests.
  OTHER = 0.001
  OTHER_SHARE = 0.02
  EXCEPTIONS = 1
  # Protocols: the scheme and curl's options.
  PROTOCOLS = { "HTTP/1.1" => ["http", "--http1.1"], "HTTP/2" => ["https", "--http2"],
                "TLS" => ["https", "--http1.1"] }.freeze
  # Said by curl of each request.
  WRITTEN = "%{url_effective} %{time_total}\n" # rubocop:disable Style/FormatStringToken

  def setup
    @curl = need_program("curl")
    @folder = Dir.mktmpdir
  end

  def teardown
    @served&.stop
    @redis&.stop
    FileUtils.remove_entry(@folder)
  end

  %i[fiber thread].each do |mode|
    define_method(:"test_accounts_explain_the_time_of_requests_in_mode_#{mode}") do
      serve(mode)
      kinds = @served.get("/kinds").body.split
      seen = PROTOCOLS.keys.map { |protocol| request_all(protocol, kinds) }.reduce(:merge)
      read_slowly
      @served.stop
      lines = @served.output.lines.filter_map { |line| JSON.parse(line) if line.include?('"account"') }

      assert_operator lines.size, :>=, REQUESTS
      report(mode, lines, seen)
      check(lines)
    end
  end

  private

  def serve(mode)
    files = TestCertificates.write(@folder, "server", TestCertificates.make("127.0.0.1"))
    command = [*ServedProcess::HEDDLE, "serve", FILE, "-b", "tls://127.0.0.1:0", "-b", "127.0.0.1:0", "--tls-cert",
               files.first, "--tls-key", files.last, "-w", "0", "--control", "off", "--mode", mode.to_s,
               "--log-format", "json"]
    @served = ServedProcess.new(command, environment:)
    @secure = @served.output[%r{https://[^\s/]+:\d+}] or flunk @served.output
  end

  # With what is installed.
  def environment
    found = { "RUBYOPT" => "#{ENV.fetch("RUBYOPT", "")} -r#{GEM_PATHS}" }
    found["ACCOUNT_SQLITE"] = "1" if Gem::Specification.find_all_by_name("sqlite3").any?
    found["ACCOUNT_POSTGRESQL"] = PrivatePostgresql.shared.url if PrivatePostgresql.programs
    found["ACCOUNT_REDIS"] = (@redis ||= PrivateRedis.new(need_program("redis-server"))).url
    found
  end

  # Sends requests of all kinds, sixteen at once.
  # @return [Hash{String => Float}] their targets, and for how long the client has waited
  def request_all(protocol, kinds)
    scheme, option = PROTOCOLS.fetch(protocol)
    base = scheme == "https" ? @secure : @served.uri.to_s.chomp("/")
    targets = Array.new((REQUESTS.to_f / PROTOCOLS.size).ceil) do |number|
      "/#{kinds[number % kinds.size]}?#{protocol}-#{number}"
    end
    list = targets.map { |target| "url=#{base}#{target}\noutput=/dev/null\n" }.join
    out, status = Open3.capture2e(@curl, "-sk", option, "--max-time", "60", "-H", "X-Plain: #{@served.uri.port}",
                                  "--no-progress-meter", "--parallel", "--parallel-max", "16", "-w", WRITTEN, "-K", "-",
                                  stdin_data: list)

    assert_predicate status, :success?, out.lines.first(5).join
    out.lines.to_h { |line| [line[%r{//[^/]+(/\S+)}, 1], line.split.last.to_f] }
  end

  # A client that takes a response late.
  def read_slowly
    TCPSocket.open(@served.uri.host, @served.uri.port) do |socket|
      socket.write("GET /stream HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      sleep 0.2
      assert_operator socket.read.bytesize, :>, 3_000_000
    end
  end

  # No part is negative. Together they are the time from the first byte until the response, which `duration` measures by
  # itself. The client may have the response earlier: the server then has still to note it.
  def check(lines)
    unexplained = lines.reject { |line| explained?(line) }

    assert_operator unexplained.size * 1000, :<=, EXCEPTIONS * lines.size, unexplained.first(5).inspect
    lines.each do |line|
      parts = line["account"]
      sum = parts.values.sum

      assert_operator parts.values.min, :>=, 0, line.inspect
      assert_operator line["duration"], :<=, sum + OTHER, line.inspect
      assert_operator sum - parts.fetch("received", 0), :<=, line["duration"] + OTHER, line.inspect
    end
  end

  def explained?(line)
    other = line["account"]["other"]
    other <= OTHER && other <= [line["duration"] * OTHER_SHARE, 1e-5].max
  end

  def report(mode, lines, seen)
    largest = lines.map { |line| line["account"]["other"] }.max
    puts "", "mode #{mode}: #{lines.size} requests, other at most #{milliseconds([largest])} ms"
    puts "medians in ms: client's clock, server's clock, sum of the parts, other; parts from 0.1 ms"
    lines.group_by { |line| line["target"][%r{/(\w+)}, 1] }.each do |kind, group|
      accounts = group.map { |line| line["account"] }
      clocks = [group.map { |line| seen.fetch(line["target"], 0) }, group.map { |line| line["duration"] },
                accounts.map { |account| account.values.sum }, accounts.map { |account| account["other"] }]
      columns = clocks.map { |times| milliseconds(times).rjust(9) }
      puts "#{kind.ljust(11)}#{columns.join}  #{medians(accounts).join(", ")}"
    end
  end

  # @return [Array<String>] of the parts that are large enough
  def medians(accounts)
    accounts.flat_map(&:keys).uniq.filter_map do |part|
      times = accounts.map { |account| account.fetch(part, 0) }
      "#{part} #{milliseconds(times)}" if median(times) >= 1e-4
    end
  end

  def milliseconds(times) = (median(times) * 1000).round(2).to_s

  def median(values) = values.sort[values.size / 2]
end

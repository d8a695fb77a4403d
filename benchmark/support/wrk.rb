# frozen_string_literal: true

require "open3"

module Bench
  # The load generator wrk, one run of it: the same program for every server, kept on the second core.
  class Wrk
    CORE = 1

    # @return [Boolean]
    def self.installed?
      ENV.fetch("PATH", "").split(File::PATH_SEPARATOR).any? { |folder| File.executable?(File.join(folder, "wrk")) }
    end

    # @param url [String] on the loopback interface
    # @param connections [Integer]
    # @param seconds [Integer]
    # @param script [String, nil] path of a Lua script
    # @param core [Integer, nil] the core to keep it on
    # @return [Wrk]
    # @raise [Child::Failed] with what wrk said
    def self.run(url, connections:, seconds:, script: nil, core: CORE)
      # Its default of 2 s would count a connection that waited longer for its turn as an error of the server's.
      command = [*Child.pin(core), "wrk", "--latency", "-t1", "-c#{connections}", "-d#{seconds}s", "--timeout", "10s",
                 *(["-s", script] if script), url]
      output, status = Open3.capture2e(*command)
      raise Child::Failed, "wrk: #{output.lines.last.to_s.strip}" unless status.success?

      new(output)
    end

    # @param output [String] what wrk printed
    def initialize(output)
      @output = output
    end

    # @return [Integer] requests that were answered
    def requests = @output[/(\d+) requests in/, 1].to_i

    # @return [Float] requests a second
    def rate = @output[%r{Requests/sec:\s+([\d.]+)}, 1].to_f

    # @return [Float, nil] the median of the latency in ms
    def p50_ms = percentile(50)

    # @return [Float, nil] the 99th percentile of the latency in ms
    def p99_ms = percentile(99)

    # @return [Integer] failed connects, reads and writes, timeouts, and answers that were no 2xx or 3xx
    def socket_errors = errors.values.sum

    # @return [Integer] answers that were no 2xx or 3xx
    def wrong_answers = errors.fetch("status")

    # @param name [String]
    # @return [Integer] what a script has counted by this name
    def counted(name) = @output[/^Answers #{name}: (\d+)$/, 1].to_i

    # @return [String] the kinds that happened, "connect 12, timeout 3"
    def error_words = errors.reject { |_, count| count.zero? }.map { |kind, count| "#{kind} #{count}" }.join(", ")

    private

    def percentile(number)
      value, unit = @output.match(/^\s+#{number}%\s+([\d.]+)(us|ms|s|m)\b/)&.captures
      value && (value.to_f * { "us" => 0.001, "ms" => 1, "s" => 1_000, "m" => 60_000 }.fetch(unit))
    end

    def errors
      found = @output.match(/Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/)
      counts = found ? found.captures.map(&:to_i) : [0, 0, 0, 0]
      wrong = @output[/Non-2xx or 3xx responses: (\d+)/, 1].to_i
      %w[connect read write timeout status].zip([*counts, wrong]).to_h
    end
  end
end

# frozen_string_literal: true

require "open3"

module Bench
  module HTTP2
    # The load generator h2load, one run of it; it answers the same questions as {Wrk}.
    class H2load
      LIMIT = 60 # seconds
      private_constant :LIMIT

      # @return [Boolean]
      def self.installed?
        ENV.fetch("PATH", "").split(File::PATH_SEPARATOR).any? { |folder| File.executable?(File.join(folder, "h2load")) }
      end

      # So many requests, and not so many seconds: over TLS, h2load 1.52 may not end after a time.
      #
      # @param url [String] on the loopback interface
      # @param connections [Integer]
      # @param streams [Integer] requests at once on each
      # @param requests [Integer] in all
      # @param flags [Array<String>] further ones
      # @return [H2load]
      # @raise [Child::Failed] with what it said
      def self.run(url, connections:, streams:, requests:, flags: [])
        output, status = Open3.capture2e("timeout", LIMIT.to_s, "h2load", "-t1", "-c#{connections}", "-m#{streams}",
                                         "-n#{requests}", *flags, url)
        raise Child::Failed, "h2load: #{output.lines.last.to_s.strip}" unless status.success?

        new(output)
      end

      # @param output [String] what h2load printed
      def initialize(output)
        @output = output
      end

      # @return [Integer] requests that were answered
      def requests = @output[/(\d+) done/, 1].to_i

      # @return [Float] requests a second
      def rate = @output[%r{finished in .*?, ([\d.]+) req/s}, 1].to_f

      # Its clock shows no percentiles.
      def p50_ms = nil

      def p99_ms = nil

      # @return [Integer] answers that were no 2xx or 3xx
      def wrong_answers = @output.scan(/(\d+) [45]xx/).sum { |(count)| count.to_i }

      # @return [Integer] requests that failed
      def socket_errors = errors.values.sum

      # @return [String] the kinds that happened
      def error_words = errors.reject { |_, count| count.zero? }.map { |kind, count| "#{kind} #{count}" }.join(", ")

      private

      # A failed one may be a wrong answer.
      def errors
        %w[failed errored timeout].to_h { |kind| [kind, @output[/(\d+) #{kind}/, 1].to_i] }
      end
    end
  end
end

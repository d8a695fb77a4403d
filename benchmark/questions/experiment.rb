# frozen_string_literal: true

require "net/http"
require "tmpdir"
require_relative "../support/bench"
require_relative "../http/server_suite"
require_relative "../http/contestants/heddle"

module Bench
  # Questions about a server whose requests share a thread, each with an experiment that finds the answer.
  module Questions
    NAMES = Dir.children(__dir__).grep_v("experiment.rb").map { |file| File.basename(file, ".rb") }.sort.freeze

    # A server with an application of its own.
    class Heddle < HTTP::Contestants::Heddle
      # @param flags [Array<String>] of `heddle serve`
      def initialize(flags:, **)
        super(**)
        @flags = flags
      end

      def command(...) = super + @flags
    end

    # What the experiments have in common.
    class Experiment
      HELLO = 'when "/hello" then "hello"'

      # @param quick [Boolean] whether it may be short, where only its running counts
      def initialize(quick:)
        @quick = quick
      end

      # @return [Array<String>] what it found, a line each
      def find = raise(NotImplementedError)

      private

      # @param cases [String] of a `case` of the path, in Ruby, each with the text of its answer
      # @yieldparam server [HTTP::Server]
      def serve(cases, flags: [], processes: 1, &)
        Dir.mktmpdir("bench-questions") do |folder|
          config = File.join(folder, "config.ru")
          File.write(config, <<~RUBY)
            run(lambda do |env|
              text = case env["PATH_INFO"]
                     #{HELLO}
                     #{cases}
                     end
              [200, { "content-type" => "text/plain" }, [text.to_s]]
            end)
          RUBY
          HTTP::Server.run(Heddle.new(config:, flags:, processes:), ruby_flags: [], &)
        end
      end

      # @return [String, nil] the body; nil where there was no answer, or another one than 200
      def get(server, path)
        Net::HTTP.start(HTTP::Server::HOST, server.port, nil, max_retries: 0, read_timeout: 60) do |http|
          answer = http.get(path)
          answer.body if answer.code == "200"
        end
      rescue SystemCallError, IOError, Timeout::Error
        nil
      end

      # @return [Array<String, nil>] the answers to all paths, asked at once
      def get_all(server, paths) = paths.map { |path| Thread.new { get(server, path) } }.map(&:value)

      # @return [Float] seconds
      def elapsed
        began = now
        yield
        now - began
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      def seconds(number) = format("%.2f s", number)
    end

    # @param name [String]
    # @return [Array<String>]
    def self.find(name, quick: false)
      require_relative name
      const_get(name.split("_").map(&:capitalize).join).new(quick:).find
    end
  end
end

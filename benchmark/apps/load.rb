# frozen_string_literal: true

require "tempfile"

module Bench
  module Apps
    # Clients that ask for the pages in turn, each over one connection.
    module Load
      # @!attribute rate [Float] requests a second
      # @!attribute p50 [Float] ms
      # @!attribute p99 [Float] ms
      # @!attribute cpu [Float] ms of CPU time a request, of all of the server's processes
      # @!attribute errors [Integer]
      Result = Data.define(:rate, :p50, :p99, :cpu, :errors)

      # Seconds between two looks at a server that still computes for clients of before, at most so many looks.
      STEP = 0.5
      LOOKS = 40

      # Requests after which a server is warm, and how many loads it gets at most.
      WARM_REQUESTS = 12_000
      WARM_LOADS = 20

      # @param server [Server]
      # @param paths [Array<String>]
      # @return [Result]
      def self.run(server, paths, clients:, seconds:)
        script(server, paths) do |path|
          before = server.cpu_seconds
          found = Wrk.run("http://127.0.0.1:#{server.port}/", connections: clients, seconds:, script: path, core: nil)
          cpu = server.cpu_seconds - before
          return Result.new(rate: found.rate, p50: found.p50_ms, p99: found.p99_ms, errors: found.socket_errors,
                            cpu: cpu * 1_000 / [found.requests, 1].max)
        end
      end

      # Lets the server's processes compile what they run often: otherwise the first figures would be those of YJIT.
      # @param server [Server]
      # @param paths [Array<String>]
      # @return [void]
      def self.warm(server, paths, seconds:)
        answered = 0
        WARM_LOADS.times do
          answered += run(server, paths, clients: 4, seconds:).rate * seconds
          return if answered >= WARM_REQUESTS
        end
      end

      # @param servers [Array<Server>] do nothing when this returns
      # @return [void]
      def self.settle(servers)
        LOOKS.times do
          before = servers.sum(&:cpu_seconds)
          sleep(STEP)
          return if servers.sum(&:cpu_seconds) - before < STEP / 20
        end
      end

      def self.script(server, paths)
        Tempfile.create(%w[apps .lua]) do |file|
          file.write(<<~LUA)
            local paths = { #{paths.map(&:dump).join(", ")} }
            local number = 0
            local fields = { ["Host"] = #{server.host.dump}, ["X-Forwarded-Proto"] = "https" }
            request = function()
              number = number % #paths + 1
              return wrk.format("GET", paths[number], fields)
            end
          LUA
          file.flush
          yield file.path
        end
      end
      private_class_method :script
    end
  end
end

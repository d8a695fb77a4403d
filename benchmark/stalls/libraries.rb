# frozen_string_literal: true

require "net/http"
require "tempfile"

module Bench
  module Stalls
    # What requests do in libraries, as they are: each kind waits or computes for so many milliseconds. What a kind
    # needs is loaded, and connected to, when it is first asked for.
    class Libraries
      POSTGRESQL = "HEDDLE_BENCH_POSTGRESQL" # the environment variable with its URL
      MARIADB = "HEDDLE_BENCH_MARIADB"       # with the path of its socket
      HTTP = "HEDDLE_BENCH_HTTP"             # with the base of its URLs
      LOCK = "HEDDLE_BENCH_LOCK"             # with the path of a file

      # Milliseconds of a ticker's sleep.
      TICK = 20
      BCRYPT_COST = 10
      TEXT = (Random.new(1).bytes(500_000) + ("text" * 250_000)).freeze

      def initialize
        @idle = Hash.new { |pools, kind| pools[kind] = Thread::Queue.new }
        %w[pg mysql2].each { |kind| @idle[kind] }
      end

      # @return [Hash{String => #call}] milliseconds are given
      def kinds
        { "pg" => ->(milliseconds) { postgresql(:exec, milliseconds) },
          "pg-sync" => ->(milliseconds) { postgresql(:sync_exec, milliseconds) },
          "mysql2" => method(:mysql2), "net-http" => method(:net_http), "flock" => method(:flock),
          "rsa" => repeated("openssl") { OpenSSL::PKey::RSA.new(2048) },
          "bcrypt" => repeated("bcrypt") { BCrypt::Password.create("secret", cost: BCRYPT_COST) },
          "zlib" => repeated("zlib") { Zlib::Deflate.deflate(TEXT) },
          "ticker" => method(:tick) }
      end

      private

      def postgresql(method, milliseconds)
        require "pg"
        with("pg", -> { PG.connect(ENV.fetch(POSTGRESQL)) }) do |connection|
          connection.public_send(method, "SELECT pg_sleep(#{milliseconds / 1_000.0})").clear
        end
      end

      def mysql2(milliseconds)
        require "mysql2"
        connect = -> { Mysql2::Client.new(socket: ENV.fetch(MARIADB), username: "root") }
        with("mysql2", connect) { |connection| connection.query("SELECT SLEEP(#{milliseconds / 1_000.0})").to_a }
      end

      def net_http(milliseconds)
        answer = Net::HTTP.get_response(URI("#{ENV.fetch(HTTP)}/#{milliseconds / 1_000.0}"))
        raise "answered #{answer.code}" unless answer.code == "200"
      end

      def flock(milliseconds)
        File.open(ENV.fetch(LOCK), "a") do |file|
          file.flock(File::LOCK_EX)
          sleep(milliseconds / 1_000.0)
        end
      end

      # A connection that is idle, or a new one.
      def with(kind, connect)
        connection = begin
          @idle[kind].pop(true)
        rescue ThreadError
          connect.call
        end
        yield connection
        @idle[kind] << connection
      end

      def repeated(library)
        lambda do |milliseconds|
          require library
          deadline = now + milliseconds
          yield while now < deadline
        end
      end

      # @return [String] the milliseconds by which each sleep was late
      def tick(milliseconds)
        late = []
        finish = now + milliseconds
        while (began = now) < finish
          sleep(TICK / 1_000.0)
          late << (now - began - TICK)
        end
        late.map { |figure| figure.round(3) }.join(" ")
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_millisecond)
    end
  end
end

# frozen_string_literal: true

require "socket"
require "tmpdir"

module Trials
  # The database servers that suites need: private ones, for one suite each.
  module Servers
    # @param name [String, nil] mariadb, redis, or nothing
    # @yieldparam environment [Hash] how the suite finds it
    def self.with(name, &)
      case name
      when nil then yield({})
      when "mariadb" then with_mariadb(&)
      when "redis" then with_redis(&)
      else raise ArgumentError, "no such server: #{name} (known: mariadb, redis)"
      end
    end

    def self.with_mariadb
      $LOAD_PATH.unshift(File.expand_path("../..", __dir__))
      require "support/private_mariadb"
      server = PrivateMariadb.new
      yield("HEDDLE_TRIAL_SOCKET" => server.socket)
    ensure
      server&.stop
    end

    def self.with_redis
      port = TCPServer.open("127.0.0.1", 0) { |socket| socket.addr[1] }
      command = ["redis-server", "--port", port.to_s, "--bind", "127.0.0.1 ::1", "--save", "", "--appendonly", "no"]
      pid = spawn(*command, chdir: Dir.tmpdir, out: File::NULL, err: File::NULL)
      await(port)
      yield("HEDDLE_TRIAL_REDIS_PORT" => port.to_s)
    ensure
      Process.kill(:TERM, pid) && Process.wait(pid) if pid
    end

    def self.await(port)
      TCPSocket.new("127.0.0.1", port).close
    rescue Errno::ECONNREFUSED
      sleep 0.02
      retry
    end
    private_class_method :with_mariadb, :with_redis, :await
  end
end

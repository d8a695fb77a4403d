# frozen_string_literal: true

require "socket"
require_relative "../../support/free_port"
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
      when "mariadb-tcp" then with_mariadb(port: free_port, &)
      when "postgresql" then with_postgresql_programs(&)
      when "redis" then with_redis(&)
      else raise ArgumentError, "no such server: #{name} (known: mariadb, mariadb-tcp, postgresql, redis)"
      end
    end

    def self.with_mariadb(port: nil)
      $LOAD_PATH.unshift(File.expand_path("../..", __dir__))
      require "support/private_mariadb"
      server = PrivateMariadb.new(port:)
      yield("HEDDLE_TRIAL_SOCKET" => server.socket, "MYSQL_SOCK" => server.socket, "MYSQL_HOST" => "127.0.0.1",
            "MYSQL_PORT" => port.to_s)
    ensure
      server&.stop
    end

    # pg's suite starts its server itself; PostgreSQL's programs refuse to be root's.
    def self.with_postgresql_programs
      real = Dir["/usr/lib/postgresql/*/bin"].find { |path| File.executable?(File.join(path, "psql")) }
      raise Sources::Missing, "pg: needs Debian's packages postgresql and postgresql-client" unless real

      Dir.mktmpdir do |folder|
        programs = File.join(folder, "programs")
        data = File.join(folder, "data")
        [programs, data].each { |path| Dir.mkdir(path) }
        File.chmod(0o755, folder)
        %w[initdb pg_ctl psql createdb].each { |name| write_postgresql_program(programs, name, real, data) }
        script(File.join(programs, "pg_config"), "echo #{programs}")
        yield("PATH" => "#{programs}:#{ENV.fetch("PATH")}", "RUBY_PG_TEST_DIR" => data, "PGUSER" => "postgres")
      end
    end

    # As root: gives the server's user what the suite has made, but for the client's key, which must be the client's.
    def self.write_postgresql_program(programs, name, real, data)
      command = "#{File.join(real, name)} \"$@\""
      if Process.uid.zero? && %w[initdb pg_ctl].include?(name)
        command = "find #{data} ! -name '*client*' -exec chown postgres: {} +\n" \
                  "exec setpriv --reuid=postgres --regid=postgres --clear-groups #{command}"
      end
      script(File.join(programs, name), command)
    end

    def self.script(path, text)
      File.write(path, "#!/bin/sh\n#{text}\n")
      File.chmod(0o755, path)
    end

    def self.free_port = FreePort.find

    def self.with_redis
      port = free_port
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
    private_class_method :with_mariadb, :with_postgresql_programs, :write_postgresql_program, :script, :free_port,
                         :with_redis, :await
  end
end

# frozen_string_literal: true

require "support/private_postgresql"

# A PgBouncer for tests, in front of a private PostgreSQL: it pools transactions, so the connections of many clients
# share a few of the database's.
class PrivatePgbouncer < PrivateServer
  PORT = 6432

  class << self
    # @return [String, nil] the program; Debian keeps it out of the PATH of those who are not root
    def program
      folders = ENV.fetch("PATH", "").split(File::PATH_SEPARATOR) + %w[/usr/sbin /usr/local/sbin]
      folders.map { |folder| File.join(folder, "pgbouncer") }.find { |path| File.executable?(path) }
    end

    # @return [PrivatePgbouncer] one for all tests of this process, stopped after the last one
    def shared
      @shared ||= new(PrivatePostgresql.shared).tap { |server| Minitest.after_run { server.stop } }
    end
  end

  # @param database [PrivatePostgresql]
  # @param connections [Integer] how many of the database's its clients share
  def initialize(database, connections: 3)
    super(".s.PGSQL.#{PORT}") do |folder|
      file = File.join(folder, "pgbouncer.ini")
      File.write(file, settings(folder, database, connections))
      File.chown(Etc.getpwnam("postgres").uid, nil, folder, file) if Process.uid.zero?
      [*PrivatePostgresql.unprivileged, self.class.program, "-q", file]
    end
  end

  # @return [String]
  def url = "postgresql:///postgres?host=#{folder}&port=#{PORT}&user=#{PrivatePostgresql::USER}"

  private

  # It has nothing to lose.
  def stop_signal = :KILL

  def settings(folder, database, connections)
    <<~INI
      [databases]
      postgres = host=#{database.folder} user=#{PrivatePostgresql::USER}
      [pgbouncer]
      unix_socket_dir = #{folder}
      listen_port = #{PORT}
      auth_type = any
      pool_mode = transaction
      default_pool_size = #{connections}
    INI
  end
end

# frozen_string_literal: true

require "concurrency/support/private_server"

# A MariaDB for tests: Debian's, with its data in a temporary folder, on a unix socket. It asks for no password and has
# no tables of its own: making those takes longer than a test. Its temporary tables are in that folder, too: a MariaDB
# that starts removes those of all others in its folder for them.
class PrivateMariadb < PrivateServer
  SOCKET = "mariadb.sock"

  class << self
    # @return [String, nil] the program; Debian keeps it out of the PATH of those who are not root
    def program
      folders = ENV.fetch("PATH", "").split(File::PATH_SEPARATOR) + %w[/usr/sbin /usr/local/sbin]
      folders.map { |folder| File.join(folder, "mariadbd") }.find { |path| File.executable?(path) }
    end

    # @return [PrivateMariadb] one for all tests of this process, stopped after the last one
    def shared
      @shared ||= new.tap { |server| Minitest.after_run { server.stop } }
    end
  end

  # @param port [Integer, nil] of loopback, beside the socket; nil: none
  def initialize(port: nil)
    network = port ? ["--port=#{port}", "--bind-address=127.0.0.1", "--skip-networking=0"] : ["--skip-networking"]
    super(SOCKET) do |folder|
      data = File.join(folder, "data")
      Dir.mkdir(data)
      [self.class.program, "--no-defaults", "--datadir=#{data}", "--tmpdir=#{folder}",
       "--socket=#{File.join(folder, SOCKET)}", "--pid-file=#{File.join(folder, "pid")}", *network,
       "--skip-grant-tables", "--max-connections=500", "--innodb-fast-shutdown=2",
       "--innodb-flush-log-at-trx-commit=0", "--innodb-log-file-size=4M",
       *("--user=root" if Process.uid.zero?)] # as root it runs only if that is said
    end
  end

  # @return [String] the path of its socket
  def socket = File.join(folder, SOCKET)

  private

  # It ends by TERM only.
  def stop_signal = :TERM
end

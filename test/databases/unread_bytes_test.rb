# frozen_string_literal: true

require "test_helper"
require "heddle"
require "socket"
require "tmpdir"
require "support/private_mariadb"

# A server says why it closes an idle connection. The next request that gets this connection would read those bytes as
# the response to its query.
class UnreadBytesTest < Minitest::Test
  DRIVERS = { "trilogy" => ->(path) { Trilogy.new(socket: path, username: "root") },
              "mysql2" => ->(path) { Mysql2::Client.new(socket: path, username: "root") } }.freeze

  DRIVERS.each do |name, connect|
    define_method("test_a_connection_of_#{name}_with_bytes_that_no_query_has_asked_for_is_not_handed_out") do
      skip "needs the gem #{name}: bin/setup" if Gem::Specification.find_all_by_name(name).empty?
      skip "needs the program mariadbd (Debian package mariadb-server-core): bin/setup --system" unless
        PrivateMariadb.program
      require name
      through_relay(PrivateMariadb.shared.socket) do |path, clients|
        Heddle.run do
          pool = Heddle::Pool.new(max: 1) { connect.call(path) }
          first = pool.with(&:itself)
          driver = Heddle::Databases.driver(first)

          assert driver.alive?(first)
          client = clients.pop
          client.write("x")
          refute driver.alive?(first)
        ensure
          pool&.close
        end
      end
    end
  end

  private

  # A socket in between, on which the test can write to the client.
  #
  # @yield [path, queue] of the socket, and where the client's connections are
  def through_relay(target)
    Dir.mktmpdir do |folder|
      path = File.join(folder, "relay")
      server = UNIXServer.new(path)
      clients = Thread::Queue.new
      accepting = Thread.new { loop { relay(server.accept, UNIXSocket.new(target), clients) } }
      yield path, clients
    ensure
      accepting.kill
      server.close
    end
  end

  def relay(client, server, clients)
    clients << client
    [[client, server], [server, client]].each do |from, to|
      Thread.new do
        IO.copy_stream(from, to)
      rescue SystemCallError, IOError
        nil
      ensure
        to.close
      end
    end
  end
end

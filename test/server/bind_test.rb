# frozen_string_literal: true

require "test_helper"
require "socket"
require "heddle/server"
require "minitest/mock"
require "tmpdir"

class BindTest < Minitest::Test
  Server = Heddle::Server

  def setup
    @listeners = []
  end

  def teardown
    @listeners.each(&:close)
  end

  def listen(bind) = bind.open.tap { |opened| @listeners.concat(opened) }

  def refused(bind) = assert_raises(Server::BootError) { listen(bind) }.message

  def test_the_kernel_chooses_port_zero
    listener, = listen(Server::TCPBind.new("127.0.0.1", 0))

    assert_operator listener.port, :>, 0
    assert_equal "http://127.0.0.1:#{listener.port}", listener.url
    TCPSocket.new("127.0.0.1", listener.port).close
  end

  def test_localhost_is_every_address_of_it_with_one_port_and_one_url
    listeners = listen(Server::TCPBind.new("localhost", 0))

    assert_equal 1, listeners.map(&:url).uniq.size
    assert_equal "http://localhost:#{listeners.first.port}", listeners.first.url
    assert_includes listeners.map { |one| one.io.local_address.ip_address }, "127.0.0.1"
  end

  # The hosts file may name fewer, or some that the machine does not have.
  def test_localhost_is_what_the_machine_has_and_not_what_its_hosts_file_says
    bind = Server::TCPBind.new("localhost", 0)
    socket = Minitest::Mock.new.expect(:close, nil)
    Addrinfo.stub(:getaddrinfo, [Addrinfo.ip("192.0.2.3")]) do
      assert_equal %w[127.0.0.1 ::1], TCPServer.stub(:new, socket) { bind.send(:addresses) }
      without = ->(*) { raise Errno::EADDRNOTAVAIL }

      assert_equal %w[127.0.0.1], TCPServer.stub(:new, without) { bind.send(:addresses) }
    end
  end

  def test_the_address_that_means_every_one_is_shown_as_one_that_a_browser_takes
    listener, = listen(Server::TCPBind.new("0.0.0.0", 0))

    assert_equal "http://localhost:#{listener.port}", listener.url
  end

  def test_every_address_of_ipv6_is_every_one_of_ipv4_too
    listener, = listen(Server::TCPBind.new("::", 0))

    assert_equal "http://localhost:#{listener.port}", listener.url
    TCPSocket.new("127.0.0.1", listener.port).close
  end

  def test_every_address_is_that_of_ipv4_on_a_machine_without_ipv6
    without = ->(address, _port) { raise Errno::EAFNOSUPPORT if address == "::" }
    listener = TCPServer.stub(:new, without) { listen(Server::TCPBind.new("::", 0)).first }

    assert_equal "0.0.0.0", listener.io.local_address.ip_address
  end

  def test_a_taken_port_is_said_with_what_to_do
    port = listen(Server::TCPBind.new("127.0.0.1", 0)).first.port

    assert_equal "can't listen on 127.0.0.1:#{port}: the port is taken by another program. Stop it, " \
                 "or choose another port with -p.", refused(Server::TCPBind.new("127.0.0.1", port))
    assert_match(/taken by another program/, refused(Server::TCPBind.new("localhost", port)))
  end

  def test_an_address_that_the_machine_does_not_have
    assert_match(/this machine has no such address/, refused(Server::TCPBind.new("192.0.2.1", 0)))
  end

  def test_a_host_that_does_not_exist
    # Made up: a real question would go to whatever answers names here.
    TCPServer.stub(:new, ->(*) { raise SocketError, "getaddrinfo: Name or service not known" }) do
      assert_match(/no address was found for that host name/, refused(Server::TCPBind.new("no-such-host.invalid", 0)))
    end
  end

  def test_a_stale_socket_file_is_replaced_and_a_live_one_is_not
    Dir.mktmpdir do |folder|
      path = File.join(folder, "a.sock")
      UNIXServer.new(path).close

      assert_path_exists path
      listener, = listen(Server::UnixBind.new(path, 0o600))

      assert_equal 0o600, File.stat(path).mode & 0o777
      assert_match(/another program has that socket/, refused(Server::UnixBind.new(path, nil)))
      listener.close

      refute_path_exists path
    end
  end

  def test_a_file_is_never_replaced_by_a_socket
    Dir.mktmpdir do |folder|
      path = File.join(folder, "notes.txt")
      File.write(path, "mine")

      assert_match(/the path is a file/, refused(Server::UnixBind.new(path, nil)))
      assert_equal "mine", File.read(path)
    end
  end

  def test_a_folder_that_is_missing_and_a_path_that_is_too_long
    assert_match(%r{the folder /nonexistent does not exist}, refused(Server::UnixBind.new("/nonexistent/a.sock", nil)))
    assert_match(/at most 107/, refused(Server::UnixBind.new("/tmp/#{"a" * 200}", nil)))
  end

  def test_several_processes_may_share_a_port_where_they_say_so
    port = listen(Server::TCPBind.new("127.0.0.1", 0, reuse_port: true)).first.port

    assert_equal port, listen(Server::TCPBind.new("127.0.0.1", port, reuse_port: true)).first.port
    assert_match(/taken/, refused(Server::TCPBind.new("127.0.0.1", port)))
  end

  def test_an_address_of_ipv6_may_be_for_that_alone
    listener, = listen(Server::TCPBind.new("::", 0, v6only: true))

    assert_equal "http://localhost:#{listener.port}", listener.url
    assert_raises(Errno::ECONNREFUSED) { TCPSocket.new("127.0.0.1", listener.port) }
    both, = listen(Server::TCPBind.new("::", 0, v6only: false))
    TCPSocket.new("127.0.0.1", both.port).close
  end

  def test_a_socket_has_its_mode_and_owner
    Dir.mktmpdir do |folder|
      user = Etc.getpwuid.name
      listen(Server::UnixBind.new(File.join(folder, "s"), 0o620, owner: "#{user}:#{Etc.getgrgid.name}"))

      assert_equal [0o620, Process.uid], File.stat(File.join(folder, "s")).then { |stat| [stat.mode & 0o777, stat.uid] }
      assert_match(/owner=nobody-of-that-name names a user or group that does not exist/,
                   refused(Server::UnixBind.new(File.join(folder, "t"), nil, owner: "nobody-of-that-name")))
    end
  end

  # Between the bind and the chmod anybody whom the umask lets in could connect, and would stay.
  def test_a_socket_has_its_mode_from_its_first_moment
    before = File.umask(0)
    at_first = nil
    Dir.mktmpdir do |folder|
      [0o600, 0o660].each do |mode|
        path = File.join(folder, mode.to_s)
        File.stub(:chmod, ->(*) { at_first = File.stat(path).mode & 0o777 }) { listen(Server::UnixBind.new(path, mode)) }

        assert_equal mode, at_first
      end
    end
    assert_equal 0, File.umask, "it is put back"
  ensure
    File.umask(before)
  end

  def test_addresses_are_parsed_with_their_parameters
    bind = Server::Bind.parse("unix:/tmp/x?mode=660&owner=a:b", 1)

    assert_equal "/tmp/x", bind.path
    assert_instance_of Server::SystemdBind, Server::Bind.parse("systemd", 1)
    assert_equal "web", Server::Bind.parse("systemd:web?tls=on", 1).name
    %w[tls ssl https].each { |name| assert_predicate Server::Bind.parse("#{name}://[::1]", 1).tls, :itself, name }
    assert_nil Server::Bind.parse("http://localhost", 1).tls
    assert_equal ["::1", 443], Server::Bind.parse("tls://[::1]:443?min=1.3", 1).then { |one| [one.host, one.port] }
    assert_equal ["h", 5], Server::Bind.parse("tcp://h?reuse_port=on&v6only=off", 5).then { |one| [one.host, one.port] }
  end

  def test_a_parameter_that_is_none_is_named
    {
      "tcp://a:1?cert=x" => "--bind tcp://a:1?cert=x: unknown parameter \"cert\" for a tcp address " \
                            "(known: proxy_protocol, reuse_port, v6only)",
      "a:1?v6only=maybe" => '--bind a:1?v6only=maybe: v6only must be on or off, but is "maybe"',
      "unix:/x?mode=9" => '--bind unix:/x?mode=9: mode must be permissions such as 660, but is "9"',
      "tls://a:1?min=1.1" => '--bind tls://a:1?min=1.1: the minimum TLS version must be 1.2 or 1.3, but is "1.1"',
      "tls://a:1?key=x" => "--bind tls://a:1?key=x: key= needs cert= in the same address",
      "tcp://" => "--bind must be host:port, [::1]:port, :port (every IPv4 address), tls://host:port, unix:path or " \
                  'systemd, but is "tcp://"',
      "tls://" => /must be host:port/, "tcp:" => /must be host:port/, "tcp://?reuse_port=on" => /must be host:port/,
      "unix:" => /must be host:port/, "a:99999" => /the port must be at most 65535/,
      "a:1?é" => /parameters after the \? can't be read/, "" => /must be host:port/
    }.each do |address, message|
      error = assert_raises(Server::ConfigurationError, address) { Server::Bind.parse(address, 1) }

      assert_operator message, :===, error.message
    end
  end
end

# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "support/free_port"
require_relative "support/client_case"
require_relative "../../support/certificates"

# Through tinyproxy and squid as Debian has them.
class ClientProxyTest < ClientCase
  def setup
    @folder = Dir.mktmpdir
    File.chmod(0o755, @folder)
    @pids = []
    @target = serve("0.0.0.0") do |socket, request|
      socket.write(hello("#{request.target} via #{request["via"] ? "proxy" : "nobody"}"))
    end
  end

  def teardown
    super
    @pids.each { |pid| finish(pid) }
    FileUtils.rm_rf(@folder)
  end

  # Killed, squid would leave shared memory. One that does not end is killed all the same: a run has hung here.
  def finish(pid)
    Process.kill(:TERM, pid)
    ended = Process.detach(pid)
    ended.join(5) || Process.kill(:KILL, pid)
    ended.join
  end

  def start(port, *command)
    @pids << spawn(*command, out: File::NULL, err: File::NULL)
    until_true { TCPSocket.open("127.0.0.1", port, &:close) || true rescue false }
    port
  end

  def tinyproxy(more = "")
    need_program "tinyproxy"
    port = FreePort.find
    file = File.join(@folder, "tinyproxy.conf")
    File.write(file, "Port #{port}\nListen 127.0.0.1\nTimeout 60\nMaxClients 50\n#{more}\n")
    start(port, "tinyproxy", "-d", "-c", file)
  end

  def squid
    need_program "squid"
    port = FreePort.find
    file = File.join(@folder, "squid.conf")
    File.write(file, <<~CONF)
      http_port 127.0.0.1:#{port}
      http_access allow all
      cache deny all
      memory_cache_shared off
      pid_filename none
      access_log none
      cache_log /dev/null
      #{"cache_effective_user proxy" if Process.uid.zero?}
      shutdown_lifetime 0 seconds
    CONF
    start(port, "squid", "-N", "-n", "heddle#{port}", "-f", file)
  end

  def through(port, credentials = nil, **) = Client.new(proxy: "http://#{credentials}127.0.0.1:#{port}", **)

  def test_http_goes_through_tinyproxy
    client = through(tinyproxy)

    assert_equal "/a?b=c via proxy", client.get("#{@target.url}/a?b=c").body
    in_loop { assert_equal "/x via proxy", client.get("#{@target.url}/x").body }
  end

  def test_http_goes_through_squid
    assert_equal "/a via proxy", through(squid).get("#{@target.url}/a").body
  end

  def test_credentials_reach_the_proxy_only
    port = tinyproxy("BasicAuth name p%ss".sub("%", "4"))

    assert_equal 407, through(port).get("#{@target.url}/").status
    assert_equal 200, through(port, "name:p4ss@").get("#{@target.url}/").status
    refute(@target.received.any? { |request| request["proxy-authorization"] })
  end

  def secure_target
    authority = TestCertificates.make("authority", authority: true)
    @ca, = TestCertificates.write(@folder, "ca", authority)
    context = OpenSSL::SSL::SSLContext.new
    context.add_certificate(*TestCertificates.make("localhost", ca: authority))
    serve(wrap: ->(socket) { OpenSSL::SSL::SSLSocket.new(socket, context).accept }) do |socket, request|
      socket.write(hello(request["via"].inspect))
    end
  end

  def test_https_goes_through_a_tunnel
    server = secure_target
    { tinyproxy: tinyproxy("ConnectPort #{server.port}"), squid: squid }.each do |name, port|
      client = through(port, tls: { ca: @ca })

      assert_equal "nil", client.get("https://localhost:#{server.port}/").body, name
    end
  end

  def test_a_refused_tunnel_is_an_error
    error = assert_raises(Client::ProxyError) { through(tinyproxy("ConnectPort 1")).get("https://localhost:2/") }

    assert_match(/refused a tunnel to localhost:2: 403/, error.message)
  end

  def test_an_unreachable_proxy_raises
    assert_raises(Client::ProxyError) { through(1).get("#{@target.url}/") }
  end

  def test_the_environment_names_the_proxy_and_what_goes_without
    program = <<~RUBY
      require "heddle"
      puts Heddle::HTTP.get("http://nobody.invalid/").status
    RUBY
    with = { "http_proxy" => "http://127.0.0.1:#{tinyproxy}", "no_proxy" => nil }

    assert_match(/\A50\d$/, ruby(program, env: with).first) # the proxy's own answer
    assert_match(/ConnectError/, ruby(program, env: with.merge("no_proxy" => "nobody.invalid")).first)
  end

  def proxy_of(url, environment)
    uri = URI(url)
    Client::ProxyEnvironment.find(uri.scheme, uri.hostname, uri.port, environment)
  end

  def test_the_environment_is_read_as_it_stands
    assert_equal "http://p:1", proxy_of("http://a.example/", "http_proxy" => "http://p:1")
    assert_equal "http://p:2", proxy_of("https://a.example/", "http_proxy" => "http://p:1", "HTTPS_PROXY" => "http://p:2")
    assert_nil proxy_of("https://a.example/", "http_proxy" => "http://p:1", "https_proxy" => "")
    assert_nil proxy_of("http://a.example/", "HTTP_PROXY" => "http://p:1", "REQUEST_METHOD" => "GET")
    %w[localhost x.localhost 127.3.2.1 [::1]].each do |host|
      assert_nil proxy_of("http://#{host}/", "http_proxy" => "http://p:1"), host
    end
  end

  def test_no_proxy_names_hosts_domains_networks_and_ports
    with = lambda do |url, no_proxy|
      proxy_of(url, "http_proxy" => "http://p:1", "no_proxy" => no_proxy).nil?
    end
    [%w[a.example a.example], %w[A.b.example b.example], %w[a.example .example], %w[a.b.example *.b.example],
     %w[a.example *], %w[10.1.2.3 10.0.0.0/8], %w[10.1.2.3 10.1.2.3], %w[[fd00::5] fd00::/8],
     %w[[fd00::5] [fd00::5]:80], %w[a.example x,a.example:80], ["a.example", "x a.example"]].each do |host, no_proxy|
      assert with.call("http://#{host}/", no_proxy), "#{host} goes without, by #{no_proxy}"
    end
    [%w[a.example b.example], %w[xa.example a.example], %w[b.example .b.example], %w[11.1.2.3 10.0.0.0/8],
     %w[10.1.2.3 fd00::/8], %w[a.example a.example:81], %w[a.example 10.0.0.0/8], %w[10.1.2.3 3], ["a.example", ""]]
      .each do |host, no_proxy|
      refute with.call("http://#{host}/", no_proxy), "#{host} goes by the proxy, in spite of #{no_proxy}"
    end
  end

  # With a proxy in the environment, a name that can't be resolved blocks no request.
  def test_no_name_is_resolved_to_find_the_proxy
    program = <<~RUBY
      require "heddle"
      require "socket"
      IPSocket.singleton_class.define_method(:getaddress) { |name| abort "resolves \#{name}" }
      puts Heddle::HTTP.get("http://nobody.invalid/").status
    RUBY

    assert_match(/\A50\d$/, ruby(program, env: { "http_proxy" => "http://127.0.0.1:#{tinyproxy}" }).first)
  end

  def test_the_proxy_is_chosen_without_the_lock_of_all_origins
    assert_kind_of Array, (catch(:seen) do
      Client::OriginRegistry.origin(Object.new) { throw :seen, Client::OriginRegistry.origins }
    end)
  end

  def test_a_proxy_that_is_none_is_named
    assert_match(/proxy: "socks5:/, assert_raises(ArgumentError) do
      Client.new(proxy: "socks5://x:1").get(@target.url)
    end.message)
  end

  def test_connection_is_closed_when_a_proxy_sends_bytes_before_the_tunnel_is_used
    ended = Thread::Queue.new
    proxy = serve do |socket, _|
      socket.write("HTTP/1.1 200 OK\r\n\r\nx")
      ended.push(socket.read)
    end
    GC.disable # it would close the connection, too

    assert_raises(Client::ConnectError) { Client.new(proxy: proxy.url).get("https://a.test/") }
    assert_equal "", ended.pop(timeout: LIMIT)
  ensure
    GC.enable
  end

  def test_proxy_is_not_connected_before_the_settings_for_tls_are_loaded
    require "heddle/net/tls/client_context"
    proxy = serve { |socket, _| socket.write("HTTP/1.1 200 OK\r\n\r\n") }
    Heddle::Net::TLS::ClientContext.stub(:for, ->(_) { raise IOError, "interrupted" }) do
      assert_raises(Client::ConnectError) { Client.new(proxy: proxy.url).get("https://a.test/") }
    end

    assert_empty proxy.received
  end

  def test_messages_about_a_proxy_have_no_password
    urls = %w[socks5://me:secret@x:1 http://me:sec/ret@x:1 me:secret@x:1 http:me:secret@x:1]
    calls = ["http://me:sec ret@x:1", *urls].map do |url|
      -> { Client.new(proxy: url).get(@target.url) }
    end
    calls << -> { Client.new(proxy: "http://me:secret@x:1", deny_private: true) }

    calls.each do |call|
      error = assert_raises(ArgumentError, &call)

      refute_match(/sec|ret/, error.message)
      assert_nil error.cause
    end
  end
end

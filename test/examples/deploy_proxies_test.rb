# frozen_string_literal: true

require "test_helper"
require "digest"
require "etc"
require "json"
require "open3"
require "socket"
require "support/certificates"
require "support/served_process"
require "tmpdir"
require_relative "../cli/demo/browser"

# The proxies of examples/deploy, with their files, in front of a real server: what curl and Chromium get through them.
class DeployProxiesTest < Minitest::Test
  FOLDER = File.expand_path("../../examples/deploy", __dir__)
  APPLICATION = File.expand_path("support/proxied.ru", __dir__)
  PATIENCE = 60

  def setup
    @folder = File.realpath(Dir.mktmpdir)
    File.chmod(0o755, @folder) # a proxy's workers may run as somebody else
    @pids = []
  end

  def teardown
    @browser&.close
    @pids.each do |pid|
      Process.kill("TERM", pid)
      Process.wait(pid)
    end
    @served&.stop
    FileUtils.remove_entry(@folder)
  end

  def path(name) = File.join(@folder, name)

  def file(name) = File.read(File.join(FOLDER, name))

  # Nobody else is told of them, but they are not kept either: whoever starts a proxy sees whether it listens.
  def free_ports(count)
    servers = Array.new(count) { TCPServer.new("127.0.0.1", 0) }
    servers.map { |server| server.addr[1] }
  ensure
    servers.each(&:close)
  end

  def serve(*arguments, **)
    @served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", *arguments, APPLICATION], folder: @folder, **)
  end

  # Starts a proxy and waits until it listens on all these ports.
  def run_proxy(*command, ports:, environment: {})
    log = path("proxy.log")
    @pids << spawn(environment, *command, chdir: @folder, out: log, err: log)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    ports.each do |port|
      TCPSocket.new("127.0.0.1", port).close
    rescue Errno::ECONNREFUSED
      ended = Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline || Process.wait(@pids.last, Process::WNOHANG)
      @pids.pop && flunk(File.read(log)) if ended
      sleep 0.02
      retry
    end
  end

  # A certificate that no client trusts, and its key.
  def certificate = TestCertificates.write(@folder, "site", TestCertificates.make("localhost", "127.0.0.1"))

  # -- nginx ----------------------------------------------------------------------------------------------------------

  # Around the file, which is included in nginx's own.
  NGINX = <<~TEXT
    daemon off;
    error_log stderr;
    pid nginx.pid;
    %<user>s
    events { }
    http {
      access_log off;
      %<folders>s
      %<site>s
    }
  TEXT

  def nginx(program)
    plain, secure = free_ports(2)
    socket = path("http.sock")
    serve("--bind", "unix:#{socket}?mode=666", "--early-hints", "on", address: /serves .* on (\S+)$/)
    cert, key = certificate
    site = file("nginx/shop.conf").gsub("/run/shop/http.sock", socket).sub("/srv/shop/public", @folder)
                                  .sub("listen 8080;", "listen 127.0.0.1:#{plain}; " \
                                                       "listen 127.0.0.1:#{secure} ssl http2; " \
                                                       "ssl_certificate #{cert}; ssl_certificate_key #{key};")
    folders = %w[client_body proxy fastcgi uwsgi scgi].map { |name| "#{name}_temp_path #{path(name)};" }.join(" ")
    user = Process.uid.zero? ? "user root;" : ""
    File.write(path("nginx.conf"), format(NGINX, user:, folders:, site:))
    run_proxy(program, "-p", @folder, "-e", "stderr", "-c", path("nginx.conf"), ports: [plain, secure])
    ["http://127.0.0.1:#{plain}", "https://127.0.0.1:#{secure}"]
  end

  # 1.22, of Debian 12, and 1.26, of Debian 13, take a 103 for the response.
  def test_nginx
    urls = nginx(need_program("nginx"))

    everything_passes(*urls)
    urls.each { |url| assert_equal ["200"], statuses(url) }
  end

  # -- HAProxy --------------------------------------------------------------------------------------------------------

  def test_haproxy_which_passes_early_hints_on
    program = need_program("haproxy")
    serve("--bind", "127.0.0.1:0", "--early-hints", "always")
    plain, secure = free_ports(2)
    File.write(path("shop.pem"), certificate.map { |name| File.read(name) }.join)
    text = file("haproxy/haproxy.cfg").sub("/etc/haproxy/shop.pem", path("shop.pem"))
                                      .sub("bind :8443", "bind 127.0.0.1:#{plain}\n    bind 127.0.0.1:#{secure}")
                                      .gsub("127.0.0.1:3000", "127.0.0.1:#{@served.uri.port}")
    File.write(path("haproxy.cfg"), text)
    run_proxy(program, "-db", "-f", path("haproxy.cfg"), ports: [plain, secure])
    urls = ["http://127.0.0.1:#{plain}", "https://127.0.0.1:#{secure}"]

    everything_passes(*urls)
    urls.each { |url| assert_equal %w[103 200], statuses(url) }
  end

  # -- Thruster -------------------------------------------------------------------------------------------------------

  def test_thruster_which_passes_early_hints_on
    spec = Gem.loaded_specs["thruster"] || Gem::Specification.find_all_by_name("thruster").first
    skip "needs the gem thruster: bin/setup" unless spec
    program = Dir[File.join(spec.full_gem_path, "exe", "*", "thrust")].first or skip "thruster has no program here"
    outer, inner = free_ports(2)
    run_proxy(program, *ServedProcess::HEDDLE, "serve", "--bind", "127.0.0.1", "--early-hints", "always", APPLICATION,
              ports: [outer, inner],
              environment: { "HTTP_PORT" => outer.to_s, "TARGET_PORT" => inner.to_s, "HEDDLE_PORT" => inner.to_s })
    url = "http://127.0.0.1:#{outer}"

    everything_passes(url)
    assert_equal %w[103 200], statuses(url)
  end

  # -- what is asked of each ------------------------------------------------------------------------------------------

  # @param secure [String, nil] of a listener with HTTP/2
  def everything_passes(plain, secure = nil)
    [plain, *secure].each do |url|
      connections_are_kept(url)
      an_upload_arrives(url)
      a_stream_comes_as_it_is_written(url)
    end
    a_browser_is_served(plain)
    a_browser_is_served(secure) if secure
  end

  def curl(*arguments)
    program = need_program("curl")
    output, status = Open3.capture2e(program, "--silent", "--show-error", "--insecure", "--max-time", PATIENCE.to_s,
                                     *arguments)

    assert_predicate status, :success?, "#{arguments.join(" ")}: #{output}\n#{File.read(path("proxy.log"))}"
    output
  end

  # @return [Array<String>] of the responses to one request, 1xx included
  def statuses(url) = curl("--include", "#{url}/").scan(%r{^HTTP/\S+ (\d+)}).flatten

  # curl's words, not Ruby's.
  WRITTEN = "%{stderr}%{http_code} %{num_connects}\n" # rubocop:disable Style/FormatStringToken

  def connections_are_kept(url)
    written = curl("--write-out", WRITTEN, "--output", File::NULL,
                   *Array.new(3) { "#{url}/" }, *%w[--output /dev/null] * 2)

    assert_equal ["200 1", "200 0", "200 0"], written.lines(chomp: true)
  end

  def an_upload_arrives(url)
    content = "0123456789" * 300_000
    File.write(path("content"), content)

    assert_equal "3000000 #{Digest::SHA256.hexdigest(content)}",
                 curl("--data-binary", "@#{path("content")}", "#{url}/upload")
  end

  def a_stream_comes_as_it_is_written(url)
    program = need_program("curl")
    IO.popen([program, "--silent", "--insecure", "--no-buffer", "--max-time", PATIENCE.to_s, "#{url}/stream"]) do |io|
      assert_equal "one\n", io.gets
      curl("#{url}/go")

      assert_equal "two\n", io.gets
    end
  end

  # A page with its style sheet, an upload, a stream and a WebSocket.
  def a_browser_is_served(url)
    @browser ||= Browser.new(need_program("chromium"), need_program("chromedriver"), insecure: true)
    @browser.visit("#{url}/")

    shown = @browser.wait_for("document.body.dataset.result", seconds: PATIENCE)

    assert shown, "#{url}: #{@browser.console}"
    result = JSON.parse(@browser.run("return document.body.dataset.result"))

    assert_equal ["1000000 #{Digest::SHA256.hexdigest("x" * 1_000_000)}", "one\ntwo\n", "hello"],
                 result.values_at("0", "1", "2"), "#{url}: #{result}"
    assert_empty @browser.console
  end
end

# frozen_string_literal: true

require "etc"
require "open3"
require "socket"
require "support/certificates"
require "support/free_port"
require "support/served_process"
require "tmpdir"

# The proxies of examples/deploy, run with their files in front of a server.
module Proxies
  FOLDER = File.expand_path("../../../examples/deploy", __dir__)
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

  def free_ports(count) = Array.new(count) { FreePort.find }

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

  # @return [Array<String>] URLs of nginx, plain and with TLS and HTTP/2, in front of the server on this socket
  def run_nginx(program, socket)
    plain, secure = free_ports(2)
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

  # @return [Array<String>] URLs of HAProxy, plain and with TLS, in front of the server on this port
  def run_haproxy(program, server_port)
    plain, secure = free_ports(2)
    File.write(path("shop.pem"), certificate.map { |name| File.read(name) }.join)
    text = file("haproxy/haproxy.cfg").sub("/etc/haproxy/shop.pem", path("shop.pem"))
                                      .sub("bind :8443", "bind 127.0.0.1:#{plain}\n    bind 127.0.0.1:#{secure}")
                                      .gsub("127.0.0.1:3000", "127.0.0.1:#{server_port}")
    File.write(path("haproxy.cfg"), text)
    run_proxy(program, "-db", "-f", path("haproxy.cfg"), ports: [plain, secure])
    ["http://127.0.0.1:#{plain}", "https://127.0.0.1:#{secure}"]
  end

  # Around the file's sites: nothing is installed, and no authority is asked for a certificate.
  CADDY = <<~TEXT
    {
      admin off
      auto_https off
      storage file_system %<folder>s/caddy
    }
  TEXT

  # @return [Array<String>] URLs of Caddy, plain and with TLS and HTTP/2, in front of the server on this socket
  def run_caddy(program, socket)
    plain, secure = free_ports(2)
    cert, key = certificate
    site = file("caddy/Caddyfile").gsub("/run/shop/http.sock", socket).sub("/srv/shop/public", path("public"))
    sites = { "http://:#{plain}" => "", "https://:#{secure}" => "tls #{cert} #{key}" }.map do |address, tls|
      site.sub("shop.example.org {", "#{address} {\nbind 127.0.0.1\n#{tls}")
    end
    File.write(path("Caddyfile"), format(CADDY, folder: @folder) + sites.join)
    environment = { "HOME" => @folder, "XDG_DATA_HOME" => @folder, "XDG_CONFIG_HOME" => @folder }
    run_proxy(program, "run", "--config", path("Caddyfile"), ports: [plain, secure], environment:)
    ["http://127.0.0.1:#{plain}", "https://127.0.0.1:#{secure}"]
  end

  def curl(*arguments)
    program = need_program("curl")
    output, status = Open3.capture2e(program, "--silent", "--show-error", "--insecure", "--max-time", PATIENCE.to_s,
                                     *arguments)

    assert_predicate status, :success?, "#{arguments.join(" ")}: #{output}\n#{File.read(path("proxy.log"))}"
    output
  end

  # @return [Array<String>] of the responses to one request, 1xx included
  def statuses(url) = curl("--include", url).scan(%r{^HTTP/\S+ (\d+)}).flatten
end

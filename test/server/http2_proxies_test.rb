# frozen_string_literal: true

require "test_helper"
require "examples/support/proxies"
require_relative "server_helpers"

# Proxies in front of a server that speaks HTTP/2: HAProxy forwards over HTTP/2, nginx over HTTP/1.1.
class Http2ProxiesTest < Minitest::Test
  include ServerHelpers
  include Proxies

  LARGE = "0123456789abcdef" * 20_000
  APP = lambda do |env|
    body = env["PATH_INFO"] == "/large" ? LARGE : "#{env["SERVER_PROTOCOL"]} #{env["rack.input"].read.to_s.bytesize}"
    [200, { "content-type" => "text/plain" }, [body]]
  end
  HAPROXY = <<~TEXT
    defaults
      mode http
      timeout connect 30s
      timeout client 30s
      timeout server 30s
    frontend front
      bind 127.0.0.1:%<front>d ssl crt %<pem>s alpn h2
      default_backend back
    backend back
      server one 127.0.0.1:%<back>d proto h2
  TEXT
  SITE = <<~TEXT
    server {
      listen 127.0.0.1:%<front>d ssl http2;
      ssl_certificate %<certificate>s;
      ssl_certificate_key %<key>s;
      location / {
        proxy_pass http://127.0.0.1:%<back>d;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
      }
    }
  TEXT

  def test_haproxy_continues_over_http2
    program = need_program("haproxy")
    serving(APP, lint: false) do
      front, = free_ports(1)
      File.write(path("site.pem"), certificate.map { |name| File.read(name) }.join)
      File.write(path("haproxy.cfg"), format(HAPROXY, front:, back: port, pem: path("site.pem")))
      run_proxy(program, "-db", "-f", path("haproxy.cfg"), ports: [front])

      ask_through(front, "HTTP/2")
    end
  end

  def test_nginx_continues_over_http1
    program = need_program("nginx")
    serving(APP, lint: false) do
      front, = free_ports(1)
      cert, key = certificate
      folders = %w[client_body proxy fastcgi uwsgi scgi].map { |name| "#{name}_temp_path #{path(name)};" }.join(" ")
      site = format(SITE, front:, back: port, certificate: cert, key:)
      user = Process.uid.zero? ? "user root;" : ""
      File.write(path("nginx.conf"), format(Proxies::NGINX, user:, folders:, site:))
      run_proxy(program, "-p", @folder, "-e", "stderr", "-c", path("nginx.conf"), ports: [front])

      ask_through(front, "HTTP/1.1")
    end
  end

  # A response, a large one, an upload, and many at once, from a client of HTTP/2.
  def ask_through(front, version)
    url = "https://127.0.0.1:#{front}"

    assert_equal "#{version} 0", curl("#{url}/")
    assert_equal LARGE, curl("#{url}/large")
    assert_equal "#{version} #{LARGE.bytesize}", curl("--data-binary", "@-", "#{url}/", input: LARGE)
    assert_equal 10, curl("--parallel", "-I", "#{url}/[1-10]").scan("HTTP/2 200").size
  end

  def curl(*arguments, input: "")
    output, status = Open3.capture2("curl", "-sSk", "--http2", *arguments, stdin_data: input)

    assert_predicate status, :success?
    output
  end
end

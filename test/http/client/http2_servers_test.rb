# frozen_string_literal: true

require "test_helper"
require "digest"
require "open3"
require "tmpdir"
require "support/free_port"
require_relative "support/client_case"

# HTTP/2 against nghttpd and nginx, over TLS where ALPN chooses it; curl is the oracle.
class ClientHTTP2ServersTest < ClientCase
  def setup
    @folder = Dir.mktmpdir
    File.chmod(0o755, @folder)
    write_certificate
    File.binwrite(path("data.bin"), Random.new(1).bytes(3 << 20))
    File.write(path("page.txt"), Array.new(20_000) { |n| "line #{n}\n" }.join)
  end

  def teardown
    super
    @pids&.each { |pid| Process.kill(:TERM, pid) && Process.wait(pid) }
    FileUtils.rm_rf(@folder)
  end

  def path(name) = File.join(@folder, name)

  def write_certificate
    key = OpenSSL::PKey::RSA.new(2048)
    certificate = OpenSSL::X509::Certificate.new
    certificate.version = 2
    certificate.serial = 1
    certificate.subject = certificate.issuer = OpenSSL::X509::Name.parse("/CN=localhost")
    certificate.public_key = key.public_key
    certificate.not_before = Time.now - 60
    certificate.not_after = Time.now + 3600
    factory = OpenSSL::X509::ExtensionFactory.new(certificate, certificate)
    certificate.add_extension(factory.create_extension("subjectAltName", "DNS:localhost,IP:127.0.0.1"))
    certificate.add_extension(factory.create_extension("basicConstraints", "CA:TRUE", true))
    certificate.sign(key, "SHA256")
    File.write(path("cert.pem"), certificate.to_pem)
    File.write(path("key.pem"), key.to_pem)
  end

  def start(port, *command)
    (@pids ||= []) << spawn(*command, out: File::NULL, err: File::NULL)
    until_true { TCPSocket.open("127.0.0.1", port, &:close) || true rescue false }
  end

  def start_nghttpd(*options)
    need_program "nghttpd"
    port = FreePort.find
    start(port, "nghttpd", "-d", @folder, *options, port.to_s, path("key.pem"), path("cert.pem"))
    "https://localhost:#{port}"
  end

  def start_nginx
    need_program "nginx"
    port = FreePort.find
    File.write(path("nginx.conf"), <<~CONF)
      #{"user root;" if Process.uid.zero?}
      daemon off; worker_processes 1; pid #{@folder}/pid; error_log /dev/null;
      events { worker_connections 256; }
      http {
        access_log off; client_body_temp_path #{@folder}/b; proxy_temp_path #{@folder}/p; client_max_body_size 10m;
        fastcgi_temp_path #{@folder}/f; uwsgi_temp_path #{@folder}/u; scgi_temp_path #{@folder}/s;
        server {
          listen 127.0.0.1:#{port} ssl http2; root #{@folder}; keepalive_requests 50; default_type text/plain;
          ssl_certificate #{path("cert.pem")}; ssl_certificate_key #{path("key.pem")};
          gzip on; gzip_types text/plain; gzip_min_length 1;
          location /small { client_max_body_size 1k; return 200 "$server_protocol\\n"; }
        }
      }
    CONF
    start(port, "nginx", "-p", @folder, "-c", path("nginx.conf"))
    "https://localhost:#{port}"
  end

  def client(url, **) = Client.new(url, proxy: nil, tls: { ca: path("cert.pem") }, **)

  def curl(url, *options)
    Open3.capture2("curl", "-s", "--compressed", "--cacert", path("cert.pem"), *options, url).first
  end

  def assert_same_bodies(url)
    need_program "curl"
    http = client(url)
    %w[/data.bin /page.txt /missing].each do |target|
      response = http.get(target)

      assert_equal Digest::SHA256.hexdigest(curl("#{url}#{target}")), Digest::SHA256.hexdigest(response.body), target
      assert_equal curl("#{url}#{target}", "-o", File::NULL, "-w", "%{http_code}").to_i, response.status # rubocop:disable Style/FormatStringToken
    end
    assert_empty http.head("/page.txt").body
    in_loop { assert_equal [3 << 20], Heddle.map(1..10) { http.get("/data.bin").body.bytesize }.uniq }
    http
  end

  def opened(url) = Client.statistics.fetch(url)[:opened]

  def test_nghttpd_gives_what_curl_gets_over_one_connection
    url = start_nghttpd
    http = assert_same_bodies(url)

    assert_equal 1, opened(url)
    assert_equal File.binread(path("data.bin")), http.get("/data.bin").body.b
  end

  def test_nghttpd_that_takes_three_requests_at_a_time
    http = client(start_nghttpd("-m", "3"))

    in_loop { assert_equal [200] * 30, Heddle.map(1..30) { http.get("/page.txt").status } }
  end

  def test_trailers_of_nghttpd
    response = client(start_nghttpd("--trailer", "digest: x")).get("/page.txt")

    assert_equal "x", response.trailers["digest"]
  end

  def test_a_body_comes_back_from_nghttpd
    body = Random.new(2).bytes(1 << 20)
    response = client(start_nghttpd("--echo-upload")).post("/", body: StringIO.new(body))

    assert_equal Digest::SHA256.hexdigest(body), Digest::SHA256.hexdigest(response.body)
  end

  # nginx ends each connection after 50 requests, with GOAWAY.
  def test_nginx_that_ends_its_connections_loses_no_request
    url = start_nginx
    http = assert_same_bodies(url)
    in_loop { assert_equal [200] * 400, Heddle.map(1..20) { Array.new(20) { http.get("/page.txt").status } }.flatten }

    assert_operator opened(url), :>, 5
    assert_equal "gzip", http.get("/page.txt")["content-encoding"]
    assert_equal 413, http.post("/small", body: "x" * 500_000).status
  end

  def test_a_client_may_speak_http1_alone
    url = start_nginx

    assert_equal "HTTP/2.0\n", client(url).get("/small").body
    assert_equal "HTTP/1.1\n", client(url, http2: false).get("/small").body
  end
end

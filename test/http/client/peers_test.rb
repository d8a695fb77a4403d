# frozen_string_literal: true

require "test_helper"
require "digest"
require "json"
require "open3"
require "tmpdir"
require "support/free_port"
require_relative "support/client_case"
require_relative "../../support/certificates"
require_relative "../../support/served_process"

# Against lighttpd, httpbin and our own server, with curl as the oracle.
class ClientPeersTest < ClientCase
  def setup
    need_program "curl"
    @folder = Dir.mktmpdir
    File.chmod(0o755, @folder)
  end

  def teardown
    super
    @pid && Process.kill(:TERM, @pid) && Process.wait(@pid)
    @served&.stop
    FileUtils.rm_rf(@folder)
  end

  def path(name) = File.join(@folder, name)

  # @return [Integer] the port that the program listens on
  def start(*command)
    port = FreePort.find
    command = yield(port) if block_given?
    @pid = spawn(*command, out: File::NULL, err: File::NULL, chdir: @folder)
    until_true { TCPSocket.open("127.0.0.1", port, &:close) || true rescue false }
    port
  end

  def curl(url, *) = Open3.capture2("curl", "-s", "--compressed", *, url).first

  def sha(bytes) = Digest::SHA256.hexdigest(bytes)

  def start_lighttpd
    need_program "lighttpd"
    File.binwrite(path("data.bin"), Random.new(1).bytes(1 << 20))
    File.write(path("page.txt"), Array.new(20_000) { |n| "line #{n}\n" }.join)
    port = start do |number|
      File.write(path("lighttpd.conf"), <<~CONF)
        server.modules = ("mod_redirect", "mod_deflate")
        server.document-root = "#{@folder}"
        server.bind = "127.0.0.1"
        server.port = #{number}
        server.max-keep-alive-requests = 7
        mimetype.assign = (".txt" => "text/plain", "" => "application/octet-stream")
        deflate.mimetypes = ("text/plain")
        deflate.allowed-encodings = ("gzip")
        deflate.max-loadavg = "1000.0"
        url.redirect = ("^/moved" => "/page.txt")
      CONF
      ["lighttpd", "-D", "-f", path("lighttpd.conf")]
    end
    "http://127.0.0.1:#{port}"
  end

  def test_lighttpd_gives_what_curl_gets
    url = start_lighttpd
    [false, :prior_knowledge].each do |http2|
      http = Client.new(url, proxy: nil, http2:)
      %w[/data.bin /page.txt /missing].each do |target|
        assert_equal sha(curl("#{url}#{target}")), sha(http.get(target).body), "#{target}, http2: #{http2}"
      end
      assert_equal "gzip", http.get("/page.txt")["content-encoding"]
      assert_match(/page\.txt\z/, http.get("/moved").url)
      assert_equal [404, ""], [http.get("/missing").status, http.head("/page.txt").body]
    end
  end

  def test_connections_that_lighttpd_ends_cost_no_request
    http = Client.new(start_lighttpd, proxy: nil)

    in_loop { assert_equal [200] * 200, Heddle.map(1..10) { Array.new(20) { http.get("/page.txt").status } }.flatten }
  end

  def start_httpbin
    python = "/usr/bin/python3" # Debian's, which has Debian's modules
    _, status = Open3.capture2e(python, "-c", "import httpbin")
    skip "needs Debian's python3-httpbin" unless status.success?

    "http://127.0.0.1:#{start { |port| [python, "-c", "from httpbin import app; app.run(port=#{port})"] }}"
  end

  def test_httpbin_sees_the_requests_of_curl
    url = start_httpbin
    http = Client.new(url, proxy: nil)
    parts = %w[args data files form json]
    of_curl = ->(*options) { JSON.parse(curl("#{url}/anything", *options)).slice(*parts) }
    of_ours = ->(response) { response.json.slice(*parts) }

    assert_equal of_curl["-G", "-d", "a=1", "-d", "b=x%20y"], of_ours[http.get("/anything", query: { a: 1, b: "x y" })]
    assert_equal of_curl["-d", "one=1&two=a%26b"], of_ours[http.post("/anything", form: { one: 1, two: "a&b" })]
    assert_equal of_curl["-H", "Content-Type: application/json", "-d", '{"a":[1,2]}'],
                 of_ours[http.post("/anything", json: { a: [1, 2] })]
    File.write(path("file.txt"), "the file")
    File.open(path("file.txt")) do |file|
      assert_equal of_curl["-F", "f=@#{path("file.txt")}", "-F", "a=1"],
                   of_ours[http.post("/anything", multipart: { f: file, a: "1" })]
    end
  end

  def test_httpbin_decides_redirects_encodings_and_statuses
    url = start_httpbin
    http = Client.new(url, proxy: nil)

    assert_equal [true, true], [http.get("/gzip").json["gzipped"], http.get("/deflate").json["deflated"]]
    assert_equal "#{url}/get", http.get("/redirect/3").url
    assert_raises(Client::RedirectError) { http.get("/redirect/6") }
    assert_equal [418, 503], [http.get("/status/418").status, http.get("/status/503").status]
    assert_equal 200, Client.new("http://user:pass%20word@127.0.0.1:#{URI(url).port}", proxy: nil)
                            .get("/basic-auth/user/pass%20word").status
    http.stream(:get, "/stream/20") { |response| assert_equal 20, response.each_line.to_a.size }
    assert_equal sha(curl("#{url}/bytes/20000?seed=1")), sha(http.get("/bytes/20000?seed=1").body)
  end

  # `heddle serve` over TLS chooses HTTP/2 by ALPN.
  def test_heddle_serves_the_client_over_one_connection_of_http2
    cert, key = TestCertificates.write(@folder, "localhost", TestCertificates.make("localhost"))
    File.write(path("config.ru"), <<~RUBY)
      run lambda { |env|
        body = env["rack.input"].read
        answer = env["PATH_INFO"] == "/large" ? "x" * 3_000_000 : "\#{env["REQUEST_METHOD"]} \#{env["SERVER_PROTOCOL"]} \#{body.bytesize}"
        [200, { "content-type" => "text/plain" }, [answer]]
      }
    RUBY
    @served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", "--workers", "0", "-b",
                                 "tls://127.0.0.1:0?cert=#{cert}&key=#{key}"], folder: @folder,
                                                                               address: %r{(https://[^\s/]+:\d+)})
    url = "https://localhost:#{@served.uri.port}"
    http = Client.new(url, proxy: nil, tls: { ca: cert })

    assert_equal curl("#{url}/", "--cacert", cert), http.get("/").body
    in_loop do
      assert_equal ["POST HTTP/2 100000"] * 30, Heddle.map(1..30) { http.post("/", body: "y" * 100_000).body }
      assert_equal [3_000_000], Heddle.map(1..5) { http.get("/large").body.bytesize }.uniq
    end
    assert_equal 1, Client.statistics.fetch(url)[:opened]
  end
end

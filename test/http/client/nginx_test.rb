# frozen_string_literal: true

require "test_helper"
require "digest"
require "tmpdir"
require "support/free_port"
require_relative "support/client_case"

# Against nginx, with curl as the oracle.
class ClientNginxTest < ClientCase
  def setup
    need_program "nginx"
    need_program "curl"
    @folder = Dir.mktmpdir
    File.chmod(0o755, @folder)
    @port = FreePort.find
    write_files
    @pid = spawn("nginx", "-p", @folder, "-c", File.join(@folder, "nginx.conf"), out: File::NULL, err: File::NULL)
    until_true { TCPSocket.open("127.0.0.1", @port, &:close) || true rescue false }
    @url = "http://127.0.0.1:#{@port}"
    @client = Client.new(@url, proxy: nil)
  end

  def teardown
    super
    Process.kill(:TERM, @pid) && Process.wait(@pid) if @pid
    FileUtils.rm_rf(@folder) if @folder
  end

  def write_files
    File.write(File.join(@folder, "page.txt"), Array.new(20_000) { |n| "line #{n}\n" }.join)
    File.binwrite(File.join(@folder, "data.bin"), Random.bytes(1 << 20))
    File.write(File.join(@folder, "nginx.conf"), <<~CONF)
      #{"user root;" if Process.uid.zero?}
      daemon off; worker_processes 1; pid #{@folder}/pid; error_log /dev/null;
      events { worker_connections 256; }
      http {
        access_log off; client_body_temp_path #{@folder}/body; proxy_temp_path #{@folder}/proxy;
        fastcgi_temp_path #{@folder}/f; uwsgi_temp_path #{@folder}/u; scgi_temp_path #{@folder}/s;
        default_type text/plain;
        server {
          listen 127.0.0.1:#{@port}; root #{@folder}; keepalive_requests 7;
          gzip on; gzip_types text/plain; gzip_min_length 1; gzip_http_version 1.0;
          location /moved { return 302 /page.txt; }
          location /small { client_max_body_size 1k; return 200 "$request_method\\n"; }
        }
      }
    CONF
  end

  def curl(path, *options) = IO.popen(["curl", "-s", "--compressed", *options, "#{@url}#{path}"], &:read)

  def test_bodies_are_those_that_curl_gets
    %w[/page.txt /data.bin /missing].each do |path|
      assert_equal Digest::SHA256.hexdigest(curl(path)), Digest::SHA256.hexdigest(@client.get(path).body), path
      assert_equal curl(path, "-o", File::NULL, "-w", "%{http_code}").to_i, @client.get(path).status # rubocop:disable Style/FormatStringToken
    end
    assert_equal "gzip", @client.get("/page.txt")["content-encoding"]
    assert_match(/page\.txt\z/, @client.get("/moved").url)
    assert_empty @client.head("/page.txt").body
  end

  def test_connections_that_nginx_ends_after_seven_requests_cost_no_request
    in_loop do
      bodies = Heddle.map(1..10) { Array.new(30) { @client.get("/page.txt").body.bytesize } }

      assert_equal [File.size(File.join(@folder, "page.txt"))], bodies.flatten.uniq
    end
  end

  def test_a_body_that_nginx_refuses_is_answered
    assert_equal 413, @client.post("/small", body: "x" * 5_000).status
    in_loop { assert_equal 413, @client.post("/small", body: StringIO.new("x" * 3_000_000)).status }
  end

  def test_parts_of_a_body
    part = @client.get("/data.bin", headers: { "Range" => "bytes=10-19" })

    assert_equal [206, File.binread(File.join(@folder, "data.bin"), 10, 10)], [part.status, part.body.b]
  end
end

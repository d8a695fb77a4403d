# frozen_string_literal: true

# test: smoke

require "test_helper"
require "open3"
require "zlib"
require_relative "support/client_case"

class ClientRequestsTest < ClientCase
  LASTING = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"

  def setup
    @server = serve { |socket, request| answer(socket, request) }
    @client = Client.new(@server.url, proxy: nil)
  end

  def answer(socket, request)
    case request.target
    when %r{\A/to/} then redirect(socket, *request.target.split("/", 4).last(2))
    when "/gzip" then compressed(socket, "gzip", Zlib.gzip("a" * 100_000))
    when "/two" then compressed(socket, "gzip", Zlib.gzip("one ") + Zlib.gzip("two"))
    when "/deflate" then compressed(socket, "deflate", Zlib.deflate("zlib"))
    when "/raw" then compressed(socket, "deflate", Zlib::Deflate.new(nil, -15).deflate("raw", Zlib::FINISH))
    when "/garbage" then compressed(socket, "gzip", "no gzip")
    when "/br" then compressed(socket, "br", "x")
    when "/events" then socket.write("#{LASTING}id: 1\ndata: a\n\ndata: b\ndata: c\n\n") && socket.close
    else socket.write(hello("#{request.head}#{request.body}"))
    end
  end

  def redirect(socket, status, location)
    socket.write("HTTP/1.1 #{status} Go\r\nLocation: #{location}\r\nContent-Length: 0\r\n\r\n")
  end

  def compressed(socket, coding, body)
    socket.write("HTTP/1.1 200 OK\r\nContent-Encoding: #{coding}\r\nContent-Length: #{body.bytesize}\r\n\r\n".b + body)
  end

  def test_every_method_is_sent_as_it_is_called
    %i[get post put patch delete].each do |method|
      assert_match(%r{\A#{method.upcase} /x HTTP/1\.1\r\n}, @client.public_send(method, "/x").body)
    end
    assert_empty @client.head("/x").body
    assert_match(/\APROPFIND /, @client.request(:propfind, "/x").body)
  end

  def test_a_uri_is_as_good_as_its_text
    assert_match(%r{\AGET /x\?a=1 HTTP}, @client.get(URI("#{@server.url}/x?a=1")).body)
    assert_match(%r{\AGET /x HTTP}, Client.new(URI(@server.url), proxy: nil).get("/x").body)
    assert_match(/\A"" is not an http/, assert_raises(ArgumentError) { @client.get(nil) }.message)
  end

  def test_limits_that_are_not_numbers_are_refused_when_the_client_is_made
    { idle_timeout: "a number of seconds, or nil", redirects: "an Integer of at least 0",
      body_limit: "an Integer of at least 0" }.each do |name, allowed|
      error = assert_raises(ArgumentError) { Client.new(@server.url, name => "3") }

      assert_equal %(#{name} is "3", but must be #{allowed}), error.message
    end
  end

  def test_queries_json_forms_and_files
    assert_match(%r{GET /x\?a=1&b=%26&c=2 }, @client.get("/x?a=1", query: { b: "&", c: 2 }).body)
    assert_match(%r{Content-Type: application/json\r.*\{"a":1\}\z}m, @client.post("/", json: { a: 1 }).body)
    assert_match(/x-www-form-urlencoded\r.*a=1&b=%C3%BC\z/m, @client.post("/", form: { a: 1, b: "ü" }).body)
    file = StringIO.new("content").tap { |io| io.define_singleton_method(:path) { "/tmp/a\"b.txt" } }
    text = @client.post("/", multipart: { note: "n", file: file }).body

    assert_match(/name="file"; filename="a%22b.txt"\r\n.*\r\n\r\ncontent\r\n--heddle-\h+--\r\n\z/m, text)
  end

  def test_bodies_in_pieces_are_chunked_and_ios_have_a_length
    assert_match(/^Transfer-Encoding: chunked\r.*onetwo\z/m, @client.post("/", body: %w[one two].each).body)
    io = StringIO.new("skipped whole").tap { |one| one.pos = 8 }

    assert_match(/^Content-Length: 5\r.*whole\z/m, @client.put("/", body: io).body)
    assert_match(/^Content-Length: 0\r/, @client.post("/").body)
  end

  def test_headers_replace_the_clients_in_whatever_case
    client = Client.new(@server.url, proxy: nil, headers: { "X-A" => "1", "accept" => nil })
    text = client.get("/", headers: { "x-a": "2" }).body

    assert_match(/^x-a: 2\r/, text)
    refute_match(/^X-A: 1|^Accept:/, text)
  end

  def test_field_values_that_would_split_a_request_are_rejected
    assert_raises(ArgumentError) { @client.get("/", headers: { "a" => "1\r\nb: 2" }) }
    assert_raises(ArgumentError) { @client.get("/", headers: { "a b" => "1" }) }
    assert_raises(ArgumentError) { @client.get("/ HTTP/1.1\r\nx: y") }
    assert_raises(ArgumentError) { @client.request("GET /x", "/") }
    assert_raises(ArgumentError) { @client.get("ftp://x/") }
    assert_raises(ArgumentError) { @client.post("/", json: 1, form: {}) }
  end

  def test_fields_of_several_encodings_are_sent_as_they_are
    values = ["\u00e4", "\xff".b, "\u00e4".encode("ISO-8859-1")]
    text = @client.get("/", headers: %w[X-A X-B X-C].zip(values).to_h).body.b

    assert_match(/^X-A: \xc3\xa4\r\nX-B: \xff\r\nX-C: \xe4\r\n/n, text)
  end

  def test_a_time_limit_that_is_not_a_number_of_seconds_is_refused
    ["5", 0, -1, Float::INFINITY, :none, { read: "5" }, { total: Float::NAN }].each do |timeout|
      assert_raises(ArgumentError, timeout.inspect) { @client.get("/", timeout: timeout) }
      assert_raises(ArgumentError, timeout.inspect) { Client.new(@server.url, timeout: timeout) }
    end
    assert_empty @server.received
  end

  def test_a_stream_can_be_read_inside_its_block_only
    response = @client.stream(:get, "/", &:itself)

    assert_match(/inside the block of stream/, assert_raises(IOError) { response.body }.message)
    assert_match(/inside the block of stream/, assert_raises(IOError) { response.each { nil } }.message)
  end

  def test_a_stop_iteration_of_the_block_is_the_callers
    queue = Thread::Queue.new.close

    assert_raises(ClosedQueueError) { @client.stream(:get, "/") { |response| response.each { |part| queue << part } } }
    assert_raises(StopIteration) { @client.stream(:get, "/") { [].each.next } }
  end

  def test_the_fields_of_framing_are_refused
    %w[content-length Content-Length TRANSFER-ENCODING].each do |name|
      [{ name => "3" }, { name.to_sym => nil }].each do |headers|
        error = assert_raises(ArgumentError) { @client.post("/", body: "abcdef", headers: headers) }
        assert_match(/header #{name}: leave it out. The client itself sends/, error.message)
        assert_raises(ArgumentError) { @client.get("/", headers: headers) }
        assert_raises(ArgumentError) { Client.new(headers: headers) }
      end
    end
    assert_empty @server.received
  end

  def test_redirects_are_followed
    assert_match(/\AGET /, @client.post("/to/302//x", body: "b").body)
    assert_match(%r{\AGET /y }, @client.get("/to/301//y").body)
    assert_match(%r{\APOST /y .*b\z}m, @client.post("/to/308//y", body: "b").body)
    assert_match(%r{\AGET /y (?!.*Content-)}m, @client.post("/to/303//y", body: "b").body)
    assert_equal 301, Client.new(@server.url, proxy: nil, redirects: 0).get("/to/301//y").status
  end

  def test_credentials_stay_with_their_origin
    other = serve { |socket, request| socket.write(hello(request.head)) }
    text = @client.get("/to/302/#{other.url}/x",
                       headers: { "Authorization" => "secret", "Cookie" => "c", "X-A" => "1" }).body

    assert_match(/^X-A: 1\r/, text)
    refute_match(/secret|cookie/i, text)
    assert_match(/^Host: 127\.0\.0\.1:#{other.port}\r/, text)
  end

  def test_credentials_in_a_redirect_replace_those_of_the_request
    location = @server.url.sub("//", "//c:d@")

    assert_equal ["Basic Yzpk"],
                 @client.get("/to/302/#{location}/x", headers: { "authorization" => "old" }).body
                        .scan(/^authorization: (.*)\r/i).flatten
  end

  def test_user_name_without_password_is_sent_with_a_colon
    assert_match(/^Authorization: Basic #{["name:"].pack("m0")}\r/,
                 @client.get("#{@server.url.sub("//", "//name@")}/x").body)
  end

  def test_a_circle_of_redirects_ends
    circle = serve { |socket, _| socket.write("HTTP/1.1 302 F\r\nLocation: /\r\nContent-Length: 0\r\n\r\n") }

    assert_raises(Client::RedirectError) { Client.new(circle.url, proxy: nil).get("/") }
    assert_equal 6, circle.received.size
  end

  def test_error_of_zlib_in_the_block_of_a_compressed_stream_is_not_replaced
    error = assert_raises(Zlib::DataError) do
      @client.stream(:get, "/gzip") { |response| response.each { |piece| Zlib.inflate(piece) } }
    end

    assert_equal "incorrect header check", error.message
  end

  def test_compressed_bodies_are_undone
    assert_equal "a" * 100_000, @client.get("/gzip").body
    assert_equal ["one two", "zlib", "raw"], %w[/two /deflate /raw].map { |path| @client.get(path).body }
    assert_raises(Client::DecodingError) { @client.get("/garbage") }
    assert_raises(Client::DecodingError) { @client.get("/br") }
  end

  def test_a_body_is_bounded_also_when_decompressed
    client = Client.new(@server.url, proxy: nil, body_limit: 50_000)

    assert_raises(Client::BodyTooLargeError) { client.get("/gzip") }
    assert_raises(Client::BodyTooLargeError) { client.post("/", body: "x" * 60_000) }
  end

  def test_a_stream_gives_pieces_events_lines_and_files
    events = @client.stream(:get, "/events") { |response| response.events.to_a }

    assert_equal([%w[message a 1], %W[message b\nc 1]], events.map { |event| event.to_h.values })
    assert_equal "a" * 100_000, @client.stream(:get, "/gzip") { |response| response.each.to_a.join }
    assert_match(/\AGET/, @client.stream(:get, "/x") { |response| response.each_line.first })
    Dir.mktmpdir do |folder|
      size = @client.stream(:get, "/gzip") { |response| response.save("#{folder}/a") }

      assert_equal [100_000, "a" * 100_000], [size, File.read("#{folder}/a")]
    end
  end

  def test_events_are_read_wherever_they_are_split
    text = "\xEF\xBB\xBF: comment\r\nevent: add\rdata:one\ndata: two\r\n\r\nid: 7\nretry: 10\ndata\n\ndata: lost"
    (0..text.bytesize).each do |split|
      reader = Client::EventReader.new
      events = []
      [text.byteslice(0, split), text.byteslice(split..)].each do |piece|
        reader.feed(piece) do |event|
          events << event
        end
      end

      assert_equal [["add", "one\ntwo", ""], ["message", "", "7"]], events.map { |event|
        event.to_h.values
      }, "split at #{split}"
      assert_equal 10, reader.retry_after
    end
  end

  def test_lines_are_read_wherever_they_are_split
    text = "one\r\n\nü three\nlast\r"
    (0..text.bytesize).each do |split|
      server_body = [text.byteslice(0, split), text.byteslice(split..)].reject(&:empty?)
      response = response_of(server_body)

      assert_equal ["one", "", "ü three", "last\r"], response.each_line.to_a, "split at #{split}"
    end
  end

  def response_of(pieces)
    head = Struct.new(:status, :fields).new(200, %w[content-type text/plain])
    Client::Response.new(head, nil, "http://a.example", "/").tap do |response|
      response.define_singleton_method(:each) { |&block| pieces.each(&block) }
    end
  end

  def test_a_line_is_bounded
    assert_equal %w[1234 1234], response_of(%W[12 34\n 1234]).each_line(limit: 4).to_a
    [%W[12345\n], %w[123 45], %w[12345], %W[1\n12345\n]].each do |pieces|
      error = assert_raises(Client::BodyTooLargeError) { response_of(pieces).each_line(limit: 4).to_a }
      assert_match(%r{a line of http://a.example/ is longer than 4 bytes}, error.message)
    end
    assert_raises(Client::BodyTooLargeError) { response_of(["x" * 1_048_576] * 17).each_line.to_a }
  end

  # Each byte is searched once: this would take a minute otherwise.
  def test_a_long_line_in_small_pieces
    pieces = ["x" * 100] * 40_000
    reader = Client::EventReader.new
    events = []
    ["data:", *pieces, "\n\n"].each { |piece| reader.feed(piece) { |event| events << event } }

    assert_equal 4_000_000, response_of(pieces + ["\n"]).each_line.first.bytesize
    assert_equal 4_000_000, events.first.data.bytesize
  end

  def test_private_addresses_are_denied_whatever_names_them
    client = Client.new(deny_private: true)
    %w[127.0.0.1 localhost [::1] [::ffff:127.0.0.1] 0.0.0.0 [::ffff:10.0.0.1]].each do |host|
      assert_raises(Client::PrivateAddressError, host) { client.get("http://#{host}:#{@server.port}/") }
    end
    assert_empty @server.received
    assert_raises(ArgumentError) { Client.new(deny_private: true, proxy: "http://127.0.0.1:1") }
  end

  # Every server of a test has a private address. In this process one of them counts as public, the others do not.
  def test_a_redirect_to_a_private_address_is_denied
    inside = serve { |socket, _| socket.write(hello("secret")) }
    hosts = %w[127.0.0.1 localhost [::ffff:127.0.0.1] [::ffff:7f00:1]]
    outside = serve("127.0.0.2") do |socket, request|
      location = hosts.fetch(request.target.delete_prefix("/").to_i)
      socket.write("HTTP/1.1 302 Found\r\nLocation: http://#{location}:#{inside.port}/\r\nContent-Length: 0\r\n\r\n")
    end
    out, = ruby(<<~RUBY, "http://127.0.0.2:#{outside.port}")
      require "heddle"
      Heddle::HTTP::Client
      Heddle::Net::PrivateNetworks.define_singleton_method(:outside?) { |address| address == "127.0.0.2" }
      client = Heddle::HTTP::Client.new(ARGV.first, deny_private: true)
      4.times do |number|
        puts client.get("/\#{number}").body
      rescue Heddle::HTTP::Client::PrivateAddressError
        puts "denied"
      end
    RUBY

    assert_equal "denied\n" * 4, out
    assert_equal [4, 0], [outside.received.size, inside.received.size]
  end

  def test_which_addresses_are_private
    outside = Heddle::Net::PrivateNetworks.method(:outside?)
    denied = %w[127.0.0.1 10.1.2.3
                172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1 0.0.0.0 224.0.0.1 255.255.255.255 ::1 ::
                fe80::1 fd00::1 ::ffff:192.168.0.1 64:ff9b::a00:1 2002:7f00:1:: ff02::1 2001:db8::1]
    allowed = %w[1.1.1.1 8.8.8.8 2606:4700::1111 ::ffff:8.8.8.8 64:ff9b::808:808 172.32.0.1]

    assert_empty(denied.select { |address| outside.call(address) })
    assert_empty(allowed.reject { |address| outside.call(address) })
  end

  # Time limits interrupt threads, also those that wait for another one to load a file.
  def test_a_request_loads_no_code
    lib = File.expand_path("../../../lib", __dir__)
    out, = Open3.capture2e(RbConfig.ruby, "-W0", "-I#{lib}", "-rheddle", "-e", <<~RUBY)
      client = Heddle::HTTP::Client.new("#{@server.url}", proxy: nil)
      before = $LOADED_FEATURES.dup
      client.get("/")
      client.post("/", body: ["x"])
      client.get("/to/302//x")
      puts "loaded: \#{$LOADED_FEATURES - before}"
    RUBY

    assert_equal "loaded: []", out.strip
  end

  def test_a_ractor_is_refused_with_a_word_on_what_to_do
    lib = File.expand_path("../../../lib", __dir__)
    out, = Open3.capture2e(RbConfig.ruby, "-W0", "-I#{lib}", "-rheddle", "-e", <<~RUBY)
      Heddle::HTTP::Client
      ractor = Ractor.new { [-> { Heddle::HTTP::Client.new }, -> { Heddle::HTTP.get("http://x/") }].map { _1.call rescue $!.message } }
      puts ractor.respond_to?(:value) ? ractor.value : ractor.take
    RUBY

    assert_equal 2, out.scan("works only in the main Ractor").size, out
  end
end

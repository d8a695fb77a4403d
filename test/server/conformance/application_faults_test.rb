# frozen_string_literal: true

require_relative "support/cases"

# What an application does wrong is contained, logged with its request, and never reaches the wire.
class ApplicationFaultsConformanceTest < Minitest::Test
  include Conformance

  # Rack::Lint would keep most of this from the server.
  served_with lint: false

  CLOSED = Thread::Queue.new

  # A body that fails after some pieces, and says when it is closed.
  Body = Data.define(:pieces, :failure, :closing) do
    def each(&block)
      pieces.each(&block)
      raise failure if failure
    end

    def close
      CLOSED << true
      raise closing if closing
    end
  end

  def self.body(*pieces, failure: nil, closing: nil) = Body.new(pieces:, failure:, closing:)

  # The client sees an error, and nothing of what the application said.
  def self.contained(name, errors: /error in GET /, forbidden: /evil/i, &app)
    path = "/#{name.tr(" ", "-")}"
    at(path, &app)
    conform("contains #{name}", get(path), errors:) do |client|
      answer = client.answer

      assert_rejection 500, answer
      refute_match forbidden, answer.fields.flatten.join("\n")
      assert_nil client.answer
    end
  end

  {
    "CR LF" => "a\r\nEvil: b", "LF" => "a\nEvil: b", "CR" => "a\rEvil: b", "NUL" => "a\0b", "CR at the end" => "a\r",
    "LF at the start" => "\na", "two line ends" => "a\r\n\r\nevil"
  }.each do |name, value|
    contained("#{name} in a value") { [200, { "x-a" => value }, ["evil"]] }
    contained("#{name} in an array of values") { [200, { "x-a" => ["b", value] }, ["evil"]] }
    contained("#{name} in a name") { [200, { "x-#{value}" => "b" }, ["evil"]] }
    contained("#{name} in a content-type") { [200, { "content-type" => "text/#{value}" }, ["evil"]] }
    contained("#{name} in a binary value") { [200, { "x-a" => "\xFF#{value}".b }, ["evil"]] }
    contained("#{name} in a value of broken encoding") { [200, { "x-a" => "\xFF#{value}" }, ["evil"]] }
    contained("#{name} in a value of an enumerable") { [200, { "x-a" => value }, %w[evil].each] }
    contained("#{name} in a value of a stream") { [200, { "x-a" => value }, ->(stream) { stream << "evil" }] }
    contained("#{name} in a location") { [302, { "location" => "/#{value}" }, []] }
  end

  contained("a name with a space") { [200, { "evil a" => "b" }, ["evil"]] }
  contained("a name with a colon") { [200, { "evil:" => "b" }, ["evil"]] }
  contained("an empty name") { [200, { "" => "evil" }, ["evil"]] }
  contained("a name beyond ASCII") { [200, { "evil-ä" => "b" }, ["evil"]] }
  contained("a name that is no string") { [200, { 5 => "evil" }, ["evil"]] }
  contained("a content-length that is none") { [200, { "content-length" => "evil" }, %w[evil].each] }
  contained("a negative content-length") { [200, { "content-length" => "-1" }, %w[evil].each] }
  contained("a content-length that is a list") { [200, { "content-length" => "4, 5" }, %w[evil].each] }
  contained("two content-lengths") { [200, { "content-length" => "4", "Content-Length" => "5" }, %w[evil].each] }
  contained("a transfer-encoding of its own") { [200, { "transfer-encoding" => "gzip" }, ["evil"]] }
  contained("a status of two digits") { [42, {}, ["evil"]] }
  contained("a status of four digits") { [2_000, {}, ["evil"]] }
  contained("a status that is interim") { [100, {}, ["evil"]] }
  contained("a status that is no number") { ["evil", {}, ["evil"]] }
  contained("a status that is nil") { [nil, {}, ["evil"]] }
  contained("nil in place of an answer") { nil }
  contained("a string in place of an answer") { "evil" }
  contained("an answer of two") { [200, {}] }
  contained("headers that are nil") { [200, nil, ["evil"]] }
  contained("headers that are a string") { [200, "evil", ["evil"]] }
  contained("a body that is nil") { [200, {}, nil] }
  contained("a body that is a number") { [200, {}, 5] }
  contained("a piece that is no string") { [200, {}, [5]] }
  contained("a first piece that is no string") { [200, {}, [:evil]] }
  contained("an error") { raise "evil" }
  contained("an error that is not a StandardError") { raise NotImplementedError, "evil" }
  contained("an error of memory") { raise NoMemoryError, "evil" }
  contained("a stack that is too deep") { raise SystemStackError, "evil" }
  contained("an error with a broken message") { raise "evil \xFF\r\nEvil: b" }
  contained("an error with a message that is no text", forbidden: /evil/i) { raise StandardError, nil }

  # Once the head is out, a status can't be taken back: the client must see that the content is not complete.
  def self.cut_off(name, content: nil, &app)
    path = "/#{name.tr(" ", "-")}"
    at(path, &app)
    conform("cuts off #{name}", get(path), errors: /error in GET /) do |client|
      answer = client.answer

      assert_equal 200, answer.status
      refute answer.complete, "the client takes it for complete: #{answer.framing} #{answer.content.inspect}"
      assert_equal content, answer.content if content
      assert_equal "", client.rest
    rescue Errno::ECONNRESET
      nil # That it is not complete is said as well.
    end
  end

  cut_off("an enumerable that fails half-way", content: "ab") { [200, {}, body("a", "b", failure: "on purpose")] }
  cut_off("an enumerable with a length that fails half-way", content: "ab") do
    [200, { "content-length" => "3" }, body("a", "b", failure: "on purpose")]
  end
  cut_off("an enumerable that fails with no StandardError") { [200, {}, body("a", failure: NotImplementedError)] }
  cut_off("a large enumerable that fails half-way") { [200, {}, body("a" * 500_000, failure: "on purpose")] }
  cut_off("a stream that fails half-way", content: "a") do
    [200, {}, lambda { |stream|
      stream << "a" && raise("on purpose")
    }]
  end
  cut_off("a stream with a length that fails half-way") do
    [200, { "content-length" => "3" }, ->(stream) { stream << "a" && raise("on purpose") }]
  end
  cut_off("a piece in the middle that is no string", content: "a") { [200, {}, body("a", 5, "b")] }
  cut_off("content that is shorter than its length", content: "ab") { [200, { "content-length" => "3" }, body("ab")] }
  cut_off("a stream that is shorter than its length", content: "ab") do
    [200, { "content-length" => "3" }, ->(stream) { stream << "ab" && stream.close }]
  end

  # The fault shows in the first part, and the head does not wait for that longer than a tick.
  at("/not-chunked") { [200, { "transfer-encoding" => "chunked" }, body("evil")] }
  conform("contains content that is said to be chunked and is not", get("/not-chunked"),
          errors: /error in GET /) do |client|
    answer = client.answer

    answer.status == 200 ? refute(answer.complete) : assert_rejection(500, answer)
    refute_match(/evil/, answer.content.to_s)
    assert_equal "", client.rest
  end

  # Right on the wire though the application was wrong.
  def self.mended(name, content:, errors: nil, status: 200, goes_on: true, &app)
    path = "/#{name.tr(" ", "-")}"
    at(path, &app)
    conform("mends #{name}", get(path), errors:) do |client|
      answer = client.answer

      assert_equal [status, content, true], [answer.status, answer.content, answer.complete]
      goes_on ? assert_goes_on(client, answer) : assert_nil(client.answer)
      refute_includes answer.fields.flatten.join("\n"), "evil"
    end
  end

  mended("content that is longer than its length", content: "ab", errors: /longer/) do
    [200, { "content-length" => "2" }, body("a", "bcd", "e")]
  end
  mended("an array that is longer than its length", content: "abcd") { [200, { "content-length" => "2" }, ["abcd"]] }
  mended("an array that is shorter than its length", content: "ab") { [200, { "content-length" => "9" }, ["ab"]] }
  mended("a stream that is closed twice", content: "ab") do
    [200, {}, ->(stream) { (stream << "ab").close || stream.close }]
  end
  mended("a stream that writes nothing", content: "") { [200, {}, lambda(&:close)] }
  mended("content with 204", content: "", status: 204) { [204, { "content-length" => "4" }, ["evil"]] }
  mended("content with 304", content: "", status: 304) { [304, {}, ["evil"]] }
  mended("a transfer-encoding with 204", content: "", status: 204) { [204, { "transfer-encoding" => "chunked" }, []] }
  mended("a transfer-encoding beside a length", content: "ab") do
    [200, { "transfer-encoding" => "identity", "content-length" => "2" }, %w[ab].each]
  end
  mended("a keep-alive of its own", content: "ab") do
    [200, { "connection" => "keep-alive", "keep-alive" => "evil" }, ["ab"]]
  end
  mended("a proxy-connection of its own", content: "ab") { [200, { "proxy-connection" => "evil" }, ["ab"]] }
  mended("a status field of its own", content: "ab") { [200, { "status" => "evil" }, ["ab"]] }
  mended("fields that are Rack's own", content: "ab") { [200, { "rack.evil" => "evil" }, ["ab"]] }
  mended("names in capitals", content: "ab") { [200, { "X-A" => "b", "CONTENT-TYPE" => "text/plain" }, ["ab"]] }
  mended("a value that is a number", content: "ab") { [200, { "x-a" => 5 }, ["ab"]] }
  mended("a status that is a string", content: "ab", status: 201) { ["201", {}, ["ab"]] }
  mended("a hundred fields with one name", content: "ab") { [200, { "x-a" => ["b"] * 100 }, ["ab"]] }
  mended("a connection that it closes", content: "ab", goes_on: false) { [200, { "connection" => "close" }, ["ab"]] }
  mended("pieces that are empty", content: "ab") { [200, {}, body("", "a", "", "b", "")] }
  mended("a close that fails", content: "ab", errors: /on closing/) { [200, {}, body("ab", closing: "on closing")] }
  mended("content that it chunked itself", content: "ab") do
    [200, { "transfer-encoding" => "chunked" }, body("2\r\nab\r\n0\r\n\r\n")]
  end

  def self.closes(name, request: nil, errors: nil, &app)
    path = "/closing/#{name.tr(" ", "-")}"
    at(path, &app)
    conform("closes the body #{name}", request || get(path), errors:) do |client|
      client.rest

      assert CLOSED.pop(timeout: Server::PATIENCE), "close was called"
      assert_empty CLOSED, "once"
    ensure
      CLOSED.clear
    end
  end

  closes("of an answer", request: get("/closing/of-an-answer", "Connection: close")) { [200, {}, body("a")] }
  closes("of HEAD", request: request("Connection: close", line: "HEAD /closing/of-HEAD HTTP/1.1")) do
    [200, {}, body("a")]
  end
  closes("of 304", request: get("/closing/of-304", "Connection: close")) { [304, {}, body] }
  closes("that fails", errors: /on purpose/) { [200, {}, body("a", failure: "on purpose")] }
  closes("that fails at once", errors: /on purpose/) { [200, {}, body(failure: "on purpose")] }
  closes("of a head that is refused", errors: /CR, LF or NUL/) { [200, { "x-a" => "b\n" }, body("a")] }
  closes("that is too short", errors: /content-length/) { [200, { "content-length" => "3" }, body("a")] }

  def setup = CLOSED.clear
end

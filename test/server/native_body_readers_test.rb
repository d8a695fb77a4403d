# frozen_string_literal: true

require "test_helper"
require "support/served_process"
require "tmpdir"
require "fileutils"

# A library that reads the body in native code, and keeps what it needs by thread: no data of one request reaches
# another, and nothing crashes, however clients send.
class NativeBodyReadersTest < Minitest::Test
  APP = <<~'RUBY'
    require "nokogiri"
    document = Nokogiri::XML('<a:r xmlns:a="relative/uri"><a:b/></a:r>')
    run do |env|
      found =
        case env["PATH_INFO"]
        when "/xml"
          Nokogiri::XML(env["rack.input"]).errors.map(&:to_s).join(", ")
        when "/reader"
          Nokogiri::XML::Reader(env["rack.input"]).count { |node| node.name == "a" }.to_s
        when "/garbage"
          Array.new(200_000) { |number| "x#{number}" }
          GC.start
          ""
        when "/canonicalize"
          begin
            document.canonicalize
          rescue RuntimeError
            ""
          end
          "alive"
        else "hello"
        end
      [200, {}, [found]]
    end
  RUBY

  GOOD = "<r>#{"<a>x</a>" * 24_000}</r>".freeze
  BAD = "<r>#{"<a>x</a>" * 11_000}<SECRET>#{"<a>x</a>" * 900}</r>".freeze

  def setup
    @folder = File.realpath(Dir.mktmpdir)
    File.write(File.join(@folder, "config.ru"), APP)
  end

  def teardown
    @served&.stop
    FileUtils.remove_entry(@folder)
  end

  def serve(*arguments)
    @served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", "-w", "1", "-p", "0", "-b", "127.0.0.1",
                                 "--no-access-log", "--control", "off", *arguments], folder: @folder)
  end

  # Has the loop take what was sent.
  def let_it_turn = 3.times { @served.get("/").body == "hello" or flunk @served.output }

  # Sends a part of each body before the rest of any.
  # @return [Array<String>] the answers' contents
  def upload_by_turns(path, *bodies)
    sockets = bodies.map do |body|
      socket = TCPSocket.new(@served.uri.host, @served.uri.port)
      socket.write("POST #{path} HTTP/1.1\r\nHost: a\r\nContent-Length: #{body.bytesize}\r\nConnection: close\r\n\r\n")
      socket.write(body[0, 70_000])
      let_it_turn
      socket
    end
    sockets.zip(bodies).map do |socket, body|
      socket.write(body[70_000..])
      socket.read.split("\r\n\r\n", 2).last
    end
  ensure
    sockets&.each(&:close)
  end

  {
    "without protections" => %w[--protect off], "with all protections" => [],
    "with threads" => %w[--mode thread]
  }.each do |name, arguments|
    define_method(:"test_errors_of_one_document_are_not_anothers_#{name.tr(" ", "_")}") do
      serve(*arguments)
      bad, good = upload_by_turns("/xml", BAD, GOOD)

      assert_match(/SECRET/, bad)
      assert_equal "", good
      assert_equal %w[48000] * 2, upload_by_turns("/reader", GOOD, GOOD)
    end

    define_method(:"test_what_the_library_keeps_by_thread_is_in_order_afterwards_#{name.tr(" ", "_")}") do
      serve(*arguments)

      assert_equal ["", ""], upload_by_turns("/xml", GOOD, GOOD)
      3.times { @served.get("/garbage") }

      assert_equal ["alive"] * 5, Array.new(5) { @served.get("/canonicalize").body }
    end
  end
end

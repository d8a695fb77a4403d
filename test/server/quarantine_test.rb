# frozen_string_literal: true

require_relative "../net/support/sockets_case"
require "heddle/server"
require "stringio"

# Two workers in one loop, the second of which is the quarantine: who answers what.
class QuarantineTest < Minitest::Test
  include Heddle::TestHelpers::SocketsCase

  Worker = Struct.new(:name, :sockets, :slot)

  # Says who answers, what was asked, and what came with it.
  def app(name)
    lambda do |env|
      body = env["rack.input"]&.read.to_s
      text = "#{name} #{env["REQUEST_METHOD"]} #{env["PATH_INFO"]} #{body.bytesize} #{body.sum}"
      [200, { "content-length" => text.bytesize.to_s }, [text]]
    end
  end

  def worker(scheduler, name)
    log = Heddle::Server::Log.new(output: StringIO.new, errors: @errors = StringIO.new)
    handler = Heddle::Rack::Handler.new(app(name), Heddle::Rack::EnvBuilder.new(errors: @errors), log)
    sockets = Heddle::Net::Sockets.new(scheduler, protocol: Heddle::HTTP::H1::Engine.new) { |one| handler.call(one) }
    slot = @board.take(1, name == "first" ? 0 : 1)
    sockets.join(@board, slot)
    sockets.quarantine(@learned.table, @learned.giving)
    Worker.new(name, sockets, slot)
  end

  # Calls the block with a client of the first.
  def served(taking: true)
    @learned = Heddle::Server::Learned.new.tap { |learned| learned.follow(Heddle::Server::Configuration.new) }
    @board = Heddle::Net::Board.new(4)
    scheduled do |scheduler|
      @first, @second = %w[first second].map { |name| worker(scheduler, name) }
      listeners = [@first, @second].map { |one| TCPServer.new("127.0.0.1", 0).tap { |io| one.sockets.listen(io) } }
      taking = taking ? Fiber.schedule { take } : nil
      @learned.settle(@second.slot)
      @learned.table.note("GET /slow/1", 5)
      @client = TCPSocket.new("127.0.0.1", listeners.first.local_address.ip_port)
      yield
    ensure
      taking&.kill
      [@client, *listeners, @learned].compact.each(&:close)
      [@first, @second].compact.each { |one| one.sockets.close }
    end
  end

  def take
    loop do
      @learned.taking.wait_readable
      @second.sockets.take_over(@learned.taking)
    end
  end

  def get(target, method: "GET") = @client.write("#{method} #{target} HTTP/1.1\r\nHost: a\r\n\r\n")

  def answer
    head = @client.gets("\r\n\r\n")
    @client.read(head[/content-length: (\d+)/i, 1].to_i)
  end

  def asked(...)
    get(...)
    answer
  end

  def test_a_learned_endpoint_is_answered_by_the_quarantine_and_others_are_not
    served do
      assert_equal "first GET / 0 0", asked("/")
      assert_equal "first POST /slow/1 0 0", asked("/slow/1", method: "POST")
      assert_equal "second GET /slow/2 0 0", asked("/slow/2?now=1")
      assert_equal "second GET / 0 0", asked("/")
      assert_equal [1, 0], [@first, @second].map { |one| one.sockets.quarantined }
      assert_equal [0, 1], [@first, @second].map { |one| one.sockets.connections }
    end
  end

  def test_what_is_on_its_way_waits_until_it_is_taken
    served(taking: false) do
      get("/slow/1")
      until_true { @first.sockets.connections == 0 }

      assert_equal 0, @second.sockets.connections
      assert @second.sockets.take_over(@learned.taking)
      assert_equal "second GET /slow/1 0 0", answer
    end
  end

  def test_a_head_that_came_in_pieces_goes_whole
    served do
      "GET /slow/3 HTTP/1.1\r\nHost: a\r\n\r\n".each_char do |byte|
        @client.write(byte)
        sleep 0
      end

      assert_equal "second GET /slow/3 0 0", answer
    end
  end

  def test_a_body_goes_along_as_far_as_it_was_read
    served do
      @learned.table.note("PUT /slow/1", 5)
      body = Random.new(1).bytes(30_000)
      @client.write("PUT /slow/9 HTTP/1.1\r\nHost: a\r\nContent-Length: #{body.bytesize}\r\n\r\n", body[...5_000])
      until_true { @second.sockets.connections == 1 }
      @client.write(body[5_000..])

      assert_equal "second PUT /slow/9 30000 #{body.sum}", answer
      @client.write("PUT /slow/9 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")

      assert_equal "second PUT /slow/9 3 #{"abc".sum}", answer
    end
  end

  def test_it_is_served_here_while_the_score_is_low_or_forgotten
    served do
      @learned.table.note("GET /little", 0.1)

      assert_equal "first GET /little 0 0", asked("/little")
      @learned.forget

      assert_equal "first GET /slow/1 0 0", asked("/slow/1")
    end
  end

  def test_it_is_served_here_when_the_quarantine_is_gone
    served do
      @learned.leave(@first.slot)

      assert_equal @second.slot, @learned.quarantine
      @second.sockets.pause_accept

      assert_equal "first GET /slow/1 0 0", asked("/slow/1")
      @second.sockets.resume_accept
      @learned.leave(@second.slot)

      assert_equal "first GET /slow/2 0 0", asked("/slow/2")
      @learned.settle(3) # nobody's

      assert_equal "first GET /slow/3 0 0", asked("/slow/3")
      @learned.settle(@first.slot)

      assert_equal "first GET /slow/4 0 0", asked("/slow/4")
    end
  end

  def test_it_is_served_here_when_the_quarantine_has_too_much_to_do
    served do
      full = UNIXSocket.pair(:SEQPACKET)
      @first.sockets.quarantine(@learned.table, full.first)
      nil while full.first.sendmsg_nonblock("x" * 1_000, exception: false) != :wait_writable

      assert_equal "first GET /slow/1 0 0", asked("/slow/1")
    ensure
      full&.each(&:close)
    end
  end

  def test_which_worker_it_is
    worker = lambda do |**options|
      options = { workers: 4, environment: "production", **options }
      Heddle::Server::Configuration.new(**options).quarantine_worker
    end

    assert_equal [3, 1, 3], [worker.call, worker.call(workers: 2), worker.call(unprotected_share: 0.5)]
    none = [{ workers: 1 }, { workers: 0 }, { quarantine: false }, { mode: :thread, threads: 5 },
            { protect: %i[offload preempt] }, { protect: [] }, { unprotected_share: 1 }]

    assert_equal([nil] * 7, none.map { |options| worker.call(**options) })
  end

  def test_what_comes_together_is_answered_in_its_order
    served do
      3.times do |i|
        get("/#{i}")
        get("/slow/#{i}")
      end
      answers = Array.new(6) { answer }

      assert_equal %w[/0 /slow/0 /1 /slow/1 /2 /slow/2], answers.map { |text| text.split[2] }
    end
  end
end

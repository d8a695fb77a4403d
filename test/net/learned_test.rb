# frozen_string_literal: true

# test: sanitize

require "test_helper"
require "tempfile"
require "heddle/net/sockets"

# Which endpoints have held up their workers, as the processes of a server share it.
class LearnedTest < Minitest::Test
  Learned = Heddle::Net::Learned
  NOW = 5_000.0

  def setup
    @learned = Learned.new(4).judge(100, 0.25)
  end

  def test_a_score_grows_with_each_stall_and_decays_with_time
    @learned.note("GET /users/7?page=2", 2.0, NOW)
    @learned.note("GET /users/8", 1.0, NOW)

    assert_in_delta 3.0, @learned.score("GET /users/9", NOW), 0.01
    assert_in_delta 1.5, @learned.score("GET /users/9", NOW + 100), 0.01
    assert_in_delta 0.0, @learned.score("GET /users", NOW)
    assert_equal ["GET /users/:id", 2], @learned.read(0, NOW).values_at(0, 2)
    assert_in_delta 50.0, @learned.read(0, NOW + 50).last, 0.1
    assert_nil @learned.read(1, NOW)
    assert_nil @learned.read(0, NOW + 3_000)
  end

  def test_one_endpoint_is_forgotten_or_all
    @learned.note("GET /a/1", 1.0)
    @learned.note("GET /b", 1.0)

    assert_equal 1, @learned.forget("GET /a/:id")
    assert_equal 0, @learned.forget("GET /a/:id")
    assert_in_delta 1.0, @learned.score("GET /b"), 0.5
    assert_equal 1, @learned.forget
    refute_predicate @learned, :any?
  end

  def test_looking_costs_nothing_while_there_is_nothing_and_when_all_has_decayed
    refute_predicate @learned, :any?
    @learned.note("GET /a", 1.0, NOW)

    assert_predicate @learned, :any?
    @learned.sweep(NOW + 1)

    assert_predicate @learned, :any?
    @learned.sweep(NOW + 3_000)

    refute_predicate @learned, :any?
  end

  def test_a_child_process_and_one_with_the_descriptor_see_the_same
    child = fork do
      @learned.note("POST /from/child", 1.0, NOW)
      exit!(0)
    end
    Process.wait(child)

    assert_in_delta 1.0, @learned.score("POST /from/child", NOW), 0.1
    copy = IO.for_fd(@learned.descriptor, autoclose: false).dup.tap { |io| io.autoclose = false }
    other = Learned.for_fd(copy.fileno)
    other.note("POST /from/child", 1.0, NOW)

    assert_in_delta 2.0, @learned.score("POST /from/child", NOW), 0.1
    other.quarantine = 3

    assert_equal 3, @learned.quarantine
    other.quarantine = nil

    assert_nil @learned.quarantine
  end

  def test_mistakes
    assert_raises(ArgumentError) { Learned.new(0) }
    assert_raises(ArgumentError) { Learned.new(5_000) }
    assert_raises(ArgumentError) { @learned.judge(0, 1) }
    assert_raises(ArgumentError) { @learned.judge(1, -1) }
    assert_raises(ArgumentError) { @learned.read(4) }
    assert_raises(ArgumentError) { @learned.note("GET /") }
    assert_raises(TypeError) { @learned.note(nil, 1.0) }
    assert_raises(IOError) { Learned.allocate.score("GET /") }
    file = Tempfile.create("learned")
    file.write("x" * 1_000)
    file.flush
    file.autoclose = false
    assert_raises(Errno::EPROTO) { Learned.for_fd(file.fileno) }
  ensure
    File.unlink(file.path)
  end
end

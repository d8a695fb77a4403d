# frozen_string_literal: true

# test: each version

require "test_helper"
require "heddle/server"
require "stringio"

class RactorSharingTest < Minitest::Test
  Sharing = Heddle::Server::Ractors::Sharing
  Application = Struct.new(:inner) do
    def call(_env) = [200, {}, []]
  end

  # What is said of an application that has this in it.
  def rejection(inner)
    assert_raises(Heddle::Server::BootError) { Sharing.new(Application.new(inner)).share }.message
  end

  def test_shareable_objects_are_deeply_frozen
    app = Application.new({ "a" => [+"b", Application.new(+"c")] })

    assert_same app, Sharing.new(app).share
    assert Ractor.shareable?(app)
  end

  def test_objects_that_belong_to_one_ractor_are_named_with_their_path
    assert_includes rejection({ a: [1, $stdout] }),
                    "  the application.inner[:a][1][1] is of the class IO, which only one Ractor can use.\n"
    assert_includes rejection([Thread::Queue.new]), "  the application.inner[0] is of the class Thread::Queue"
    refute_predicate $stdout, :frozen?
  end

  def test_variables_of_objects_are_looked_at
    object = Object.new
    object.instance_variable_set(:@lock, Thread::Mutex.new)

    assert_includes rejection(object), "  @lock of Object is of the class Thread::Mutex"
  end

  def test_other_objects_that_cannot_be_shared_are_named_by_ruby
    assert_includes rejection(StringIO.new), "  the application (RactorSharingTest::Application): can not make shar"
  end

  def test_a_block_is_named_by_its_line
    list = []
    message = rejection(-> { list << 1 })

    assert_includes message, "the application.inner is a block (#{__FILE__}:#{__LINE__ - 2}), and Ruby can't share it"
    assert_includes message, "is a block by an instance of a class with a method `call`"
  end

  # The block's self can be shared.
  module Blocks
    list = []
    REFERS = -> { list }
  end

  def test_a_block_is_named_with_the_variable_that_is_not_shareable
    assert_match(/\(.*variable.*list/, rejection(Blocks::REFERS))
  end

  def test_circular_references_are_visited_once
    ring = [Thread::Mutex.new]
    ring << ring

    assert_equal 1, rejection(ring).scan("Thread::Mutex").size
  end
end

# frozen_string_literal: true

# test: each version

require "test_helper"
require "heddle/server"
require "monitor"
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
                    "  the application.inner[:a][1] is an IO, which is one Ractor's alone\n"
    assert_includes rejection(Monitor.new), "  the application.inner is a Monitor"
    assert_includes rejection([Thread::Queue.new]), "  the application.inner[0] is a Thread::Queue"
  end

  def test_unshareable_objects_of_c_classes_are_found
    assert_includes rejection({ a: [StringIO.new] }), "the application.inner[:a][0] is a StringIO"
  end

  def test_a_block_is_named_by_its_line
    list = []
    message = rejection(-> { list << 1 })

    assert_includes message, "the application.inner is a block (#{__FILE__}:#{__LINE__ - 2}), and its "
  end

  # The blocks' self can be shared.
  module Blocks
    list = []
    count = 0
    REFERS = -> { list }
    ASSIGNS = -> { count += 1 }
    METHOD = method(:puts).to_proc
  end

  def test_a_block_is_named_with_the_variable_that_is_not_shareable
    assert_includes rejection(Blocks::REFERS), "and its variable list refers to an object that is not shareable: write"
  end

  def test_a_block_that_assigns_a_variable_around_it_is_named
    assert_includes rejection(Blocks::ASSIGNS), "and it assigns variables of its surroundings (count): write a class"
  end

  if RUBY_VERSION >= "4.0" # older ones share it
    def test_a_block_of_a_method_is_rejected_where_ruby_can_not_share_it
      assert_includes rejection(Blocks::METHOD), "the application.inner is a block, and Ruby can't share it (not"
    end
  end

  def test_shareable_lambda_is_advised_where_ruby_has_it
    assert_equal Ractor.respond_to?(:shareable_lambda), rejection(-> {}).include?(", or use Ractor.shareable_lambda")
  end

  def test_elements_of_a_set_are_looked_at
    assert_includes rejection(Set[Thread::Mutex.new]), "an element of the application.inner is a Thread::Mutex"
  end

  def test_circular_references_are_visited_once
    ring = [Thread::Mutex.new]
    ring << ring

    assert_equal 1, rejection(ring).scan("Thread::Mutex").size
  end

  def test_more_than_twenty_are_counted
    assert_includes rejection(Array.new(23) { Thread::Mutex.new }), "\n  and 3 more\n"
  end
end

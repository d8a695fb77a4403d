# frozen_string_literal: true

require "test_helper"
require "heddle"

# Which pieces of a changed list are sent.
class LivePatchTest < Minitest::Test
  Patch = Heddle::Live::Patch

  # What the browser does, see lib/heddle/live/live.js.
  def apply(old, script)
    cursor = 0
    script.each_with_object([]) do |step, pieces|
      case step
      when String then cursor = step.to_i
      when Array then pieces << step
      when Integer
        pieces.concat(old[cursor, step])
        cursor += step
      else
        piece = old[cursor].dup
        step.each { |place, value| piece[place + 1] = value }
        pieces << piece
        cursor += 1
      end
    end
  end

  def test_equal_lists_need_no_patch
    assert_nil Patch.between([[0, "a"]], [[0, "a"]])
  end

  def test_a_changed_value_is_sent_alone
    old = Array.new(100) { |number| [1, number, "off"] }
    new = old.map(&:dup).tap { |pieces| pieces[50][2] = "on" }

    assert_equal [50, { 1 => "on" }, 49], Patch.between(old, new)
  end

  def test_pieces_that_come_go_and_move_are_not_sent_again
    old = %w[a b c d].map { |name| [0, name] }

    assert_equal [[0, "new"], 4], Patch.between(old, [[0, "new"], *old])
    assert_equal ["1", 3], Patch.between(old, old.drop(1))
    assert_equal ["3", 1, "0", 3], Patch.between(old, old.rotate(-1))
    assert_empty Patch.between(old, [])
  end

  def test_a_patch_makes_the_new_list_of_any_old_one
    random = Random.new(15)
    5_000.times do
      old, new = Array.new(2) { Array.new(random.rand(9)) { [random.rand(2), random.rand(4), random.rand(2).to_s] } }
      patch = Patch.between(old, new) || [old.size]

      assert_equal new, apply(old, patch), "#{old} by #{patch}"
    end
  end
end

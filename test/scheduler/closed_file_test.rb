# frozen_string_literal: true

require "test_helper"
require "support/scheduled"
require "tempfile"

# A file that is closed while the kernel reads it for a fiber.
class ClosedFileTest < Minitest::Test
  include Scheduled

  SIZE = 65_536

  # A file of this letter, of which the kernel keeps no page in memory where it does as it is asked.
  def file_of(letter)
    file = Tempfile.new("closed", "/var/tmp")
    file.write(letter * SIZE)
    file.fsync
    file.advise(:dontneed)
    file
  end

  # Without completions, or with the pages in memory, a file is read at once.
  def test_a_read_never_meets_the_file_that_got_the_number
    first, second = file_of("a"), file_of("b")
    read = +""
    outcome = nil
    scheduled do
      number = first.fileno
      Fiber.schedule do
        outcome = first.pread(SIZE, 0, read).size
      rescue IOError, SystemCallError => e
        outcome = e
      end
      waited = outcome.nil?
      first.close
      copy = second.dup

      assert_equal number, copy.fileno
      until_true { sleep(0.001) && outcome }
      if waited
        assert_instance_of IOError, outcome
        assert_match(/closed/, outcome.message)
      else
        assert_equal SIZE, outcome
      end
      refute_includes read, "b"
      copy.close
    end
  ensure
    [first, second].each(&:close!)
  end
end

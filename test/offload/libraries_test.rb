# frozen_string_literal: true

require_relative "support/offloaded"
require "openssl"
require "socket"
require "tempfile"
require "zlib"

# Libraries as they come with Ruby, unchanged.
class OffloadLibrariesTest < Minitest::Test
  include Offloaded

  # How many calls were offloaded that the block has made.
  def offloaded
    before = Heddle::Offload.threads[:calls]
    yield
    Heddle::Offload.threads[:calls] - before
  end

  def test_compression_is_offloaded_and_its_buffers_grow_by_callbacks
    data = Random.new(1).bytes(500_000) * 3
    packed = nil
    calls = offloaded { in_loop { packed = Heddle.map(1..4) { Zlib::Deflate.deflate(data, 1) } } }

    assert_operator calls, :>=, 1
    packed.each { |text| assert_equal data, Zlib::Inflate.inflate(text) }
    assert_equal data, in_loop { Zlib.gunzip(Zlib.gzip(data)) }
  end

  def test_a_broken_stream_raises_as_ever
    in_loop { assert_raises(Zlib::DataError) { Zlib::Inflate.inflate("no such thing" * 1000) } }
  end

  def test_keys_are_made_beside_the_loop
    keys = nil
    turns = 0
    calls = offloaded do
      in_loop do
        keys = Array.new(2) { Heddle.async { OpenSSL::PKey::RSA.new(2048) } }
        Heddle.async do
          until keys.all?(&:ended?)
            turns += 1
            sleep 0.001
          end
        end
      end
    end

    assert(keys.all? { |key| key.value.private? })
    assert_operator calls, :>=, 2
    assert_operator turns, :>=, 1 # made in place, they would have ended before
  end

  def test_key_generation_progress_runs_in_the_calling_fiber
    in_loop do
      here = Fiber.current
      fibers = []
      key = OpenSSL::PKey::RSA.generate(1024) { fibers << Fiber.current }

      assert_predicate key, :private?
      assert_equal [here], fibers.uniq
      assert_raises(IndexError) { OpenSSL::PKey::RSA.generate(1024) { raise IndexError } }
    end
  end

  def test_files_are_written_and_synced
    Tempfile.create("synced") do |file|
      calls = offloaded do
        in_loop do
          file.write("kept")
          file.flush
          file.fsync
          file.fdatasync
        end
      end

      assert_equal "kept", File.read(file.path)
      assert_operator calls, :>=, 2
    end
  end

  def test_names_are_looked_up_by_libc_beside_the_loop
    in_loop do
      assert_includes Addrinfo.getaddrinfo("127.0.0.1", 80).map(&:ip_port), 80
      assert_kind_of String, Addrinfo.tcp("127.0.0.1", 80).getnameinfo.first
    end
  end
end

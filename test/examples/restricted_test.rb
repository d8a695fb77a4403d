# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "tmpdir"
require_relative "served_example"

# An application with uploads and offload under what examples/deploy/systemd/shop.service takes away, without systemd: a
# user with no rights, no capability, and no way to get one.
class RestrictedExampleTest < Minitest::Test
  RESTRICTIONS = %w[--reuid=65534 --regid=65534 --clear-groups --no-new-privs --bounding-set=-all
                    --inh-caps=-all].freeze
  APP = <<~RUBY
    require "heddle"
    require "sinatra/base"
    require "zlib"

    class Shop < Sinatra::Base
      post("/photos") { params["photo"]["tempfile"].size.to_s }
      get("/deflate") do
        sizes = Array.new(2) { Zlib.deflate(Random.bytes(20_000_000)).size }
        [*sizes, Heddle::Offload.threads[:calls]].join(" ")
      end
      get("/rights") { File.read("/proc/self/status") }
    end
    run Shop
  RUBY

  def setup
    skip "needs root, to take its rights away" unless Process.uid.zero?
    skip "needs the gems of examples/sinatra: bin/setup" unless ServedExample.gems?("sinatra")
    @folder = Dir.mktmpdir
    File.write(File.join(@folder, "config.ru"), APP)
    FileUtils.mkdir(File.join(@folder, "tmp"))
    FileUtils.chown_R(65_534, 65_534, @folder)
  end

  def teardown
    @served&.stop
    FileUtils.rm_rf(@folder) if @folder
  end

  def test_uploads_offload_and_reloads_work_without_rights
    command = [need_program("setpriv"), *RESTRICTIONS, *ServedProcess::HEDDLE, "serve", "--port", "0", "--workers", "2"]
    environment = ServedExample.bundle("sinatra").merge("TMPDIR" => File.join(@folder, "tmp"), "HOME" => @folder)
    @served = ServedProcess.new(command, environment:, folder: @folder)

    assert_match(/^CapBnd:\s0+$.*^NoNewPrivs:\s1$/m, @served.get("/rights").body)
    assert_equal "3000000", upload("x" * 3_000_000).body
    assert_match(/\A2\d{7} 2\d{7} [1-9]\d*\z/, @served.get("/deflate").body, "the second call is offloaded")
    Process.kill(:HUP, @served.pid)

    assert_equal "3000000", upload("x" * 3_000_000).body
  end

  def upload(bytes)
    request = Net::HTTP::Post.new("/photos")
    request.set_form([["photo", bytes, { filename: "photo.jpg" }]], "multipart/form-data")
    Net::HTTP.start(@served.uri.host, @served.uri.port) { |http| http.request(request) }
  end
end

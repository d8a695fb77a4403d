# frozen_string_literal: true

require "test_helper"
require "support/served_process"
require "tmpdir"

# An application that calls `exit` ends its server, whatever runs its requests.
class ExitTest < Minitest::Test
  APPLICATION = <<~RUBY
    run ->(env) { env["PATH_INFO"] == "/exit" ? exit(3) : [200, {}, ["fine"]] }
  RUBY

  { "in a fiber" => %w[--mode fiber], "in a loop of several" => %w[--mode fiber --threads 3],
    "in a thread" => %w[--mode thread], "in single mode" => %w[--mode single -w 2] }.each do |name, flags|
    define_method(:"test_#{name.tr(" ", "_")}") do
      Dir.mktmpdir do |folder|
        config = File.join(folder, "config.ru")
        File.write(config, APPLICATION)
        served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", config, "-p", "0", *flags])

        assert_equal "fine", served.get("/").body
        assert_raises(EOFError, Errno::ECONNRESET, Errno::ECONNREFUSED) { served.get("/exit") }
        assert_equal 3, served.wait.exitstatus
      end
    end
  end
end

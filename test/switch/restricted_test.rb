# frozen_string_literal: true

# test: nightly

require "test_helper"
require "support/bundle"
require "tmpdir"
require_relative "rails/application"

# An application of `rails new` under what examples/deploy/systemd/shop.service takes away, without systemd: a user
# without rights, no capability and no way to get one, a system that can't be written to but for the application's
# folder, and a /tmp of its own. The filter of system calls is systemd's alone.
class RestrictedRailsTest < Minitest::Test
  USER = 65_534
  # The folder, then the command.
  RESTRICT = <<~SHELL.freeze
    set -e
    folder=$1
    shift
    mount --bind "$folder" "$folder"
    mount -o remount,bind,ro /
    mount -t tmpfs -o mode=1777 tmpfs /tmp
    cd "$folder"
    exec prlimit --nofile=4096 setpriv --reuid=#{USER} --regid=#{USER} --clear-groups --no-new-privs \
      --bounding-set=-all --inh-caps=-all -- "$@"
  SHELL
  UPLOAD = Switch::RailsApplication.checks.find { |check| check.name == "an upload to Active Storage" }
  CONTROLLER = <<~RUBY
    class RightsController < ActionController::Base
      def show = render(plain: File.read("/proc/self/status"))
      # SQLite computes in a call that is offloaded.
      def count
        sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000) SELECT count(*) FROM n"
        2.times { @found = Post.connection.select_value(sql) }
        render plain: [@found, Heddle::Offload.threads[:calls]].join(" ")
      end
      def write = render(plain: (File.write("/etc/heddle", "") rescue $!.class.name))
    end
  RUBY

  def setup
    skip "needs root, to take its rights away" unless Process.uid.zero?
    skip "needs the gems of test/switch/rails: bin/setup" unless Bundle.installed?(File.join(__dir__, "rails/Gemfile"))
    %w[unshare setpriv prlimit mount].each { |program| need_program(program) }
    @parent = Dir.mktmpdir("restricted", File.expand_path("../../tmp", __dir__)) # /tmp is another there
    FileUtils.chmod(0o755, @parent)
  end

  def teardown
    @served&.stop
    FileUtils.rm_rf(@parent) if @parent
  end

  def test_rails_with_uploads_and_offload_works_without_rights
    serve_restricted

    assert_match(/^CapBnd:\s0+$.*^NoNewPrivs:\s1$/m, get("/rights/show"))
    assert_match(/\AErrno::(EROFS|EACCES)\z/, get("/rights/write"))
    assert_match(/\A2000000 [1-9]\d*\z/, get("/rights/count"), "the second call is offloaded")
    assert_nil UPLOAD.observe(@application).error
    Process.kill(:HUP, @served.pid)

    assert_nil UPLOAD.observe(@application).error
  end

  def serve_restricted
    @application = Switch::RailsApplication.new(File.join(@parent, "shop"))
    @application.make
    @application.use("heddle")
    File.write(File.join(@application.folder, "app/controllers/rights_controller.rb"), CONTROLLER)
    @application.replace("config/routes.rb", /^end\s*\z/, %(  get "rights/:action", controller: "rights"\nend\n))
    FileUtils.chown_R(USER, USER, @application.folder)
    @served = serve
    served = @served
    @application.define_singleton_method(:served) { |_environment| served }
  end

  def serve
    port = Switch::Served.free_port
    command = ["bundle", "exec", "heddle", "serve", "--bind", "127.0.0.1:#{port}", "--workers", "2"]
    @application.serve(:production, port:, more: { "HOME" => @application.folder },
                                    command: ["unshare", "--mount", "--ipc", "--uts", "sh", "-c", RESTRICT, "sh",
                                              @application.folder, *command])
  end

  def get(path) = Net::HTTP.get(URI.join(@served.uri, path))
end

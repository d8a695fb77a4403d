# frozen_string_literal: true

require_relative "lib/heddle/version"

Gem::Specification.new do |spec|
  spec.name = "heddle"
  spec.version = Heddle::VERSION
  spec.authors = ["the Heddle contributors"]
  spec.summary = "A Rack server on its own fiber runtime: one request seldom delays another."
  spec.description = "A Fiber scheduler with a native event loop (io_uring, epoll, kqueue, select), structured " \
                     "concurrency, and a Rack 3 server in which one request seldom delays another. What does is " \
                     "bounded, named and counted."
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.3"
  spec.metadata["rubygems_mfa_required"] = "true"

  # Set before a release, here alone.
  addresses = { "homepage_uri" => nil, "source_code_uri" => nil, "changelog_uri" => nil, "documentation_uri" => nil,
                "bug_tracker_uri" => nil }.compact
  spec.homepage = addresses["homepage_uri"]
  spec.metadata.update(addresses)
  spec.post_install_message = <<~MESSAGE
    Heddle is installed. `heddle demo` shows the server at work. In the folder of an application that runs under Puma:
    `heddle init --apply`, and back with `heddle init --undo`.
  MESSAGE

  # What git tracks; in a copy without git, what lies there. lib/.document and ext/heddle/.document list the files
  # from which `gem install` makes the pages of `ri`.
  shipped = %w[lib/ ext/ exe/ sig/ README.md CHANGELOG.md LICENSE]
  tracked = IO.popen(%w[git ls-files -z], chdir: __dir__, err: File::NULL) { |git| git.read.split("\0") }
  tracked = Dir.glob("**/*", base: __dir__).reject { |path| path.start_with?("lib/heddle/native/") } if tracked.empty?
  spec.files = tracked.select { |path| path.start_with?(*shipped) && File.file?(File.join(__dir__, path)) }

  spec.bindir = "exe"
  spec.executables = ["heddle"]
  spec.require_paths = ["lib"]
  spec.extensions = ["ext/heddle/extconf.rb"]

  spec.add_dependency "rack", "~> 3.0"
end

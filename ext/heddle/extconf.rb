# frozen_string_literal: true

# Configures the extension, heddle.so, which consists of all C files under this folder. The files of a layer are in the
# layer's folder (selector/, scheduler/, net/ ...). They include headers by their paths from this folder
# ("selector/waiter.h").
#
# Environment variables that bin/compile sets:
#   HEDDLE_WERROR=1            warnings are errors
#   HEDDLE_DEBUG=1             compiles with -Og -g3 and assertions (defines HEDDLE_DEBUG)
#   HEDDLE_SANITIZE=address,…  compiles with these sanitizers and assertions
#   HEDDLE_CHECKOUT=1          builds for developers: more warnings, and a failed compilation is an error on a Mac, too
#   HEDDLE_PORTABLE=1          does not link libruby, so that any Ruby of this version can load the extension, whether
#                              that Ruby has a shared or a static libruby
# Environment variables that users set:
#   HEDDLE_ZLIB=0              builds without zlib, even if it is installed

require "fileutils"
require "open3"
require "rbconfig"

HEDDLE_PACKAGES = {
  "debian" => "apt-get install build-essential ruby-dev", "fedora" => "dnf install gcc make ruby-devel",
  "alpine" => "apk add build-base linux-headers ruby-dev", "arch" => "pacman -S base-devel",
  "suse" => "zypper install gcc make ruby-devel", "macos" => "xcode-select --install"
}.freeze

def heddle_install_command
  return HEDDLE_PACKAGES["macos"] if RbConfig::CONFIG["host_os"].include?("darwin")

  family = File.read("/etc/os-release").scan(/^ID(?:_LIKE)?="?([^"\n]*)/).join(" ")
  HEDDLE_PACKAGES.find { |name, _| family.include?(name) }&.last || "install gcc or clang, make and Ruby's headers"
rescue SystemCallError
  "install gcc or clang, make and Ruby's headers"
end

def heddle_program?(name)
  return File.executable?(name) if name.include?("/")

  ENV.fetch("PATH", "").split(File::PATH_SEPARATOR).any? { |folder| File.executable?(File.join(folder, name)) }
end

# Called when the extension can't be built. On a Mac the gem is then installed without it, because applications are
# developed there and served elsewhere. On other systems, and with HEDDLE_CHECKOUT=1, the installation fails.
def heddle_give_up(reason)
  abort "heddle: #{reason}" unless HEDDLE_MAY_LACK

  # Not printed by `warn`, which RUBYOPT=-W0 silences.
  $stderr.print("heddle: #{reason}\n", "heddle: the gem was installed without its C extension, and can't serve here.\n")
  File.write("not_built.txt", "#{reason}\n")
  heddle_write_makefile("true")
  exit
end

# Writes a Makefile that runs the shell command `compile`. The command compiles the library with Makefile.heddle, which
# mkmf has made; if that fails, the command writes the reason to not_built.txt. If not_built.txt exists, it is installed
# instead of the library. heddle_give_up has already written not_built.txt, so it passes a command that does nothing.
def heddle_write_makefile(compile)
  File.write("Makefile", <<~MAKE)
    sitearchdir = #{RbConfig::CONFIG["sitearchdir"]}
    all:
    \t@#{compile}
    install: all
    \t@if test -f not_built.txt; then mkdir -p $(DESTDIR)$(sitearchdir)/heddle && \\
    \t  cp not_built.txt $(DESTDIR)$(sitearchdir)/heddle/; else $(MAKE) -f Makefile.heddle install; fi
    clean distclean:
    .PHONY: all install clean distclean
  MAKE
end

HEDDLE_MAY_LACK = RbConfig::CONFIG["host_os"].include?("darwin") && ENV["HEDDLE_CHECKOUT"] != "1"

if RbConfig::CONFIG["host_os"].match?(/mswin|mingw|cygwin/)
  abort "heddle: Windows is not supported: run it on Linux (for example in WSL), macOS or a BSD."
end
if RUBY_ENGINE != "ruby" || Gem::Version.new(RUBY_VERSION) < Gem::Version.new("3.3")
  abort "heddle: CRuby 3.3 or newer is needed, and this is #{RUBY_ENGINE} #{RUBY_VERSION}: install a newer CRuby."
end

# mkmf ignores the environment variable CC.
RbConfig::CONFIG["CC"] = RbConfig::MAKEFILE_CONFIG["CC"] = ENV["CC"] if ENV["CC"]
compiler = RbConfig::CONFIG["CC"].split.first.to_s
unless heddle_program?(compiler)
  heddle_give_up "no C compiler (#{compiler} is not on PATH), install one: #{heddle_install_command}"
end
unless File.exist?(File.join(RbConfig::CONFIG["rubyhdrdir"].to_s, "ruby.h"))
  heddle_give_up "the headers of Ruby #{RUBY_VERSION} are missing, install them: #{heddle_install_command}"
end

# The compiler is tested here, because mkmf reports a broken compiler with a page of options and a backtrace.
program = "#include <stdio.h>\nint main(void) { return puts(\"\") < 0; }\n"
_, works = Open3.capture2e(*RbConfig::CONFIG["CC"].split, "-x", "c", "-", "-o", "heddle-conftest", stdin_data: program)
FileUtils.rm_f("heddle-conftest")
unless works.success?
  heddle_give_up "#{compiler} can't build a program, install the missing packages: #{heddle_install_command}"
end

require "mkmf"

# Defines HAVE_… for each of these functions that the system or Ruby has. Compiling a test program takes a quarter of a
# second. So one program tests all functions; only if it can't be linked, each function is tested by its own program.
def heddle_have(functions)
  declared = functions.map { |name| "extern void #{name}(void);\n" }.join
  used = functions.map { |name| "#{name}();" }.join
  return functions.each { |name| have_func(name) } unless try_link("#{declared}int main(void) { #{used} return 0; }\n")

  $defs.concat(functions.map { |name| "-DHAVE_#{name.upcase}" })
end

if RbConfig::CONFIG["host_os"].include?("linux") # every Linux has these headers
  $defs.push("-DHAVE_SYS_EPOLL_H", "-DHAVE_SYS_EVENTFD_H")
else
  %w[sys/epoll.h sys/eventfd.h sys/event.h].each { |header| have_header(header) }
end
heddle_have(%w[accept4 memfd_create pthread_mutexattr_setrobust pthread_mutex_clocklock recvmmsg])
rubys = %w[rb_thread_io_blocking_call]
rubys << "rb_thread_lock_native_thread" unless RUBY_VERSION.start_with?("3.3")
rubys.push("rb_thread_io_blocking_operation", "rb_fiber_scheduler_blocking_operation_extract") if RUBY_VERSION >= "4"
heddle_have(rubys)

# zlib is optional: without it, Heddle rejects the option websocket_deflate.
$defs << "-DHEDDLE_ZLIB=1" if ENV["HEDDLE_ZLIB"] != "0" && have_library("z", "deflateInit2_", "zlib.h")

# The compiler's flags are set only now, so that none of the checks above fails because of a warning.
# Ruby's own $warnflags are not used: they differ from build to build, and some builds don't add them to CFLAGS.
$warnflags = ""
# _GNU_SOURCE: ruby.h defines it, and files that don't include ruby.h need the same system interfaces.
$CFLAGS << " -std=gnu17 -D_GNU_SOURCE=1 -fvisibility=hidden -MMD -MP"
# These warnings are only for developers, because they take four percent of the compile time.
$CFLAGS << " -Wall -Wextra -Wno-unused-parameter -Wpointer-arith -Wwrite-strings" if ENV["HEDDLE_CHECKOUT"] == "1"
if ENV["HEDDLE_DEBUG"] == "1"
  $CFLAGS << " -Og -g3 -DHEDDLE_DEBUG=1"
elsif (sanitizers = ENV.fetch("HEDDLE_SANITIZE", "")) != ""
  # asan-stack is off: Ruby leaves frames by longjmp and reuses fiber stacks without informing ASan. So ASan would
  # report outdated marks around local variables as errors of later frames.
  $CPPFLAGS << " -U_FORTIFY_SOURCE"
  $CFLAGS << " -O1 -g3 -DHEDDLE_DEBUG=1 -fno-omit-frame-pointer -fsanitize=#{sanitizers}"
  $CFLAGS << " -fno-sanitize-recover=undefined"
  $CFLAGS << (try_cflags("--param=asan-stack=0") ? " --param=asan-stack=0" : " -mllvm -asan-stack=0")
  $LDFLAGS << " -fsanitize=#{sanitizers}"
else
  # -O3 takes a fifth more time to compile, and does not save any instructions for a request. Debug information would be
  # four fifths of the library's size, and take a tenth of the compile time.
  $CFLAGS << " -O2 -g0"
  $LIBRUBYARG_SHARED = $LIBRUBYARG_STATIC = $LIBRUBYARG = "" if ENV["HEDDLE_PORTABLE"] == "1"
  # With the linker flag -z defs, an undefined symbol fails the build. Otherwise the first program that needs the symbol
  # would fail.
  if $LIBRUBYARG != "" && RbConfig::CONFIG["ENABLE_SHARED"] == "yes" && try_ldflags("-Wl,-z,defs")
    $DLDFLAGS << " -Wl,-z,defs"
  end
end
$CFLAGS << " -Werror" if ENV["HEDDLE_WERROR"] == "1"

# mkmf names an object file after its source file, without the folder. But two layers may both have an event.c, so the
# names of the objects include the folders here.
sources = Dir.glob("**/*.c", base: __dir__).sort
objects = sources.to_h { |source| [source, "#{source.delete_suffix(".c").tr("/", "-")}.#{$OBJEXT}"] }
$srcs = sources.map { |source| File.join("$(srcdir)", source) }
$objs = objects.values
$INCFLAGS << " -I$(srcdir)"

create_makefile("heddle/heddle")

File.open("Makefile", "a") do |makefile|
  objects.each do |source, object|
    compile = "$(CC) $(INCFLAGS) $(CPPFLAGS) $(CFLAGS) $(COUTFLAG)$@ -c $<"
    makefile.puts "#{object}: $(srcdir)/#{source} Makefile", "\t$(ECHO) compiling #{source}", "\t$(Q) #{compile}", ""
  end
  makefile.puts "-include $(OBJS:.#{$OBJEXT}=.d)"
  # RubyGems copies the library, and would keep the files that are no longer needed: the objects, and the joined sources
  # that bin/package has made (unit_*.c). The sources of a checkout are not removed.
  makefile.puts "install: remove-objects", "remove-objects: install-so install-rb",
                "\t-$(Q)$(RM) $(OBJS) $(OBJS:.#{$OBJEXT}=.d) $(DLLIB) $(srcdir)/unit_*.c"
end

if HEDDLE_MAY_LACK
  File.rename("Makefile", "Makefile.heddle")
  heddle_write_makefile("rm -f not_built.txt; $(MAKE) -f Makefile.heddle all 2>heddle-errors.txt || " \
                        "{ grep -m 1 error heddle-errors.txt || echo the compiler failed; } >not_built.txt")
end

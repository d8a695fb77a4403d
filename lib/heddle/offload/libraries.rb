# frozen_string_literal: true

module Heddle
  # The shipped lists of native libraries.
  module Offload
    # Libraries whose calls may run on any thread: the source of each was checked for that, and a trial in this
    # repository tests it. An entry begins with a prefix of the file's name. It continues with prefixes of the libraries
    # with which it was tested, except the system's and Ruby's. A library that was linked with others is not known good.
    # The extension gets this list unchanged.
    #
    # @api private
    KNOWN_GOOD = [
      "pg_ext. libpq", # pg 1.7.0 with the libpq that it brings: test/trials/databases_test.rb
      "mysql2. libmariadb", # mysql2 0.5.7 with libmariadb 3.3: test/trials/databases_test.rb
      "bcrypt_ext.", # bcrypt 3.1.22: test/trials/computing_test.rb
      "openssl. libssl.so.3 libcrypto.so.3", # openssl 3.2.0, 3.3.3 and 4.0.2 with OpenSSL 3.5: computing_test.rb
      "zlib. libz.so.1", # zlib 3.1.1 and 3.2.3 with zlib 1.2.13: test/trials/computing_test.rb
      "socket." # the one that comes with Ruby 3.3 and 3.4: test/offload/libraries_test.rb
    ].freeze

    # Prefixes of the file names of libraries that no option can allow. Some of their functions must stay on the thread
    # that called them first; some run loops of their own; ffi keeps a list of its calls by thread.
    DENIED = %w[
      cuda libcuda pycall rjbcore rugged IO_Event nio4r_ext glib2 gtk3 gtk4 opengl glfw sdl2 ruby-sdl qt qml ffi_c.
      lmdb_ext
    ].freeze

    # Libraries that only compute and wait for no other fiber: their functions run inline as long as they are quick.
    QUICK = %w[zlib.].freeze

    # Libraries whose waits in libc are offloaded, too, though they hold Ruby's lock.
    LIBC = %w[libpq].freeze

    # Libraries that no option can add to LIBC: they wait while they hold locks that belong to their thread.
    NEVER_LIBC = %w[sqlite3 libsqlite3].freeze

    private_constant :DENIED, :QUICK, :LIBC, :NEVER_LIBC
  end
end

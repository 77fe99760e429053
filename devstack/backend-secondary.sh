#!/usr/bin/env bash
# The pool's server is designate-pool-nameserver, which comes with this project and touches nothing of the system's.

function install_designate_pool_server {
    : # it is installed with the other programs
}

# configure_designate_pool_server SECTION - The secret of the control socket and the options of the driver.
function configure_designate_pool_server {
    _designate_pool_new_secret | _designate_pool_private control.secret
    iniset "$DESIGNATE_POOL_CONF" "$1" control_host 127.0.0.1
    iniset "$DESIGNATE_POOL_CONF" "$1" control_port "$DESIGNATE_POOL_CONTROL_PORT"
    iniset "$DESIGNATE_POOL_CONF" "$1" control_secret "file:$DESIGNATE_POOL_CONF_DIR/control.secret"
}

function init_designate_pool_server {
    rm -rf "${DESIGNATE_POOL_STATE_PATH:?}/zones"
}

function start_designate_pool_server {
    local command
    command="$(_designate_pool_program nameserver) --listen $(_designate_pool_endpoint "$DESIGNATE_POOL_DNS_PORT")"
    command+=" --control 127.0.0.1:$DESIGNATE_POOL_CONTROL_PORT"
    command+=" --secret-file $DESIGNATE_POOL_CONF_DIR/control.secret"
    command+=" --tsig-key-file $DESIGNATE_POOL_CONF_DIR/transfer.key"
    command+=" --state $DESIGNATE_POOL_STATE_PATH/zones"
    run_process designate-pool-server "$command"
}

function cleanup_designate_pool_server {
    : # all of it is in the folders of designate-pool
}
